import { leave } from "../terminal/confirm.ts";
import { canPrompt, promptLine } from "../terminal/prompt.ts";

/** What somebody at the terminal types without echo; undefined where nobody is. */
export async function askSecret(text: string): Promise<string | undefined> {
  if (!canPrompt()) return undefined;
  return promptLine({ text, secret: true, signal: new AbortController().signal, onInterrupt: leave });
}
