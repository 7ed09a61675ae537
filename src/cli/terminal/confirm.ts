import { exitCodes, KcoreError } from "#errors/problem.ts";
import { canPrompt, promptLine } from "./prompt.ts";

/**
 * Asks before something that cannot be undone; `yes` answers beforehand.
 * @throws KcoreError QUESTION_UNANSWERED when nobody can be asked, CONFIRM_DENIED when the answer is not yes
 */
export async function confirm(question: string, { yes = false }: { readonly yes?: boolean }): Promise<void> {
  if (yes) return;
  if (!canPrompt())
    throw new KcoreError({
      code: "QUESTION_UNANSWERED",
      message: `nobody is there to answer: ${question}`,
      hint: "run it in a terminal, or give --yes",
    });
  const answer = await promptLine({
    text: `${question} [yes/no]`,
    secret: false,
    signal: new AbortController().signal,
    onInterrupt: leave,
  });
  if (answer?.trim().toLowerCase() === "yes") return;
  throw new KcoreError({ code: "CONFIRM_DENIED", message: "nothing was changed" }, { exitCode: exitCodes.failed });
}

/** What Ctrl-C does while a question stands on the screen. */
export function leave(): never {
  process.stdin.setRawMode(false);
  process.stderr.write("\n");
  process.exit(exitCodes.interrupted);
}
