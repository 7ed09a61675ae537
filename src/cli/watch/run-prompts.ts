import type { Question } from "#engine/events/event.ts";
import { operatorCaller, knowsTitles } from "#tui/questions.ts";
import { canPrompt, promptLine } from "../terminal/prompt.ts";

/**
 * Returns a function that takes the open questions, and the work that begins after the yes to a confirmation. It asks one question after
 * the other, and removes a prompt when another view has answered.
 */
export function promptInTurn(
  answer: (id: string, value: string) => void,
  onInterrupt: () => void,
): (open: readonly Question[], upcoming?: string) => void {
  const askedIds = new Set<string>();
  const call = operatorCaller((text) => process.stderr.write(text), knowsTitles(process.env));
  let current: { readonly id: string; readonly stop: AbortController } | undefined;
  let [open, upcoming]: [readonly Question[], string] = [[], ""];
  const next = async (): Promise<void> => {
    const question = open.find(({ id }) => !askedIds.has(id));
    if (!question) return;
    const { id, secret, node, kind } = question;
    askedIds.add(id);
    const stop = new AbortController();
    current = { id, stop };
    const choice = kind === "confirm" ? `${upcoming === "" ? "" : ` (${upcoming})`} [yes/no]` : "";
    const text = `${node === undefined ? "" : `${node}  `}${question.text}${choice}`;
    const typed = await promptLine({ text, secret, signal: stop.signal, onInterrupt });
    if (typed !== undefined) answer(id, typed);
    current = undefined;
    await next();
  };
  return (questions, work = "") => {
    [open, upcoming] = [questions, work];
    if (canPrompt()) call(open.length);
    if (current && !open.some(({ id }) => id === current?.id)) current.stop.abort();
    if (!current) void next();
  };
}
