import { exitCodes, KcoreError, usageError } from "#errors/problem.ts";
import { readPassphraseFile } from "./given-passphrase.ts";
import { canPrompt, promptLine } from "./prompt.ts";

interface TypedAnswerOptions {
  /** Whether the answer is typed without echo. */
  readonly secret?: boolean;
}

/** The line that the operator types; undefined without a terminal, or after Ctrl-D. Ctrl-C ends kcore. */
export async function ask(text: string, { secret = false }: TypedAnswerOptions = {}): Promise<string | undefined> {
  if (!canPrompt()) return undefined;
  return promptLine({ text, secret, signal: new AbortController().signal, onInterrupt: leave });
}

/** As {@link ask}, without echo. */
export function askSecret(text: string): Promise<string | undefined> {
  return ask(text, { secret: true });
}

/** The error's texts if no operator can answer. */
interface Unanswered {
  readonly message: string;
  readonly hint: string;
}

/** The operator's answer; empty after Ctrl-D. @throws KcoreError QUESTION_UNANSWERED without a terminal */
export async function requireAnswer(
  text: string,
  unanswered: Unanswered,
  options?: TypedAnswerOptions,
): Promise<string> {
  if (!canPrompt()) throw new KcoreError({ code: "QUESTION_UNANSWERED", ...unanswered });
  return (await ask(text, options)) ?? "";
}

/** A new secret, typed twice. @throws KcoreError QUESTION_UNANSWERED without a terminal or for an empty one, USAGE if the two differ */
export async function requireNewSecret(text: string, unanswered: Unanswered): Promise<string> {
  const first = await requireAnswer(text, unanswered, { secret: true });
  if (first === "") throw new KcoreError({ code: "QUESTION_UNANSWERED", ...unanswered });
  if ((await askSecret("Once more")) === first) return first;
  throw usageError("the two passphrases differ", "try again");
}

/** Whether the operator answers with yes. @throws KcoreError QUESTION_UNANSWERED */
export async function isConfirmed(question: string, unanswered: Unanswered): Promise<boolean> {
  return (await requireAnswer(`${question} [yes/no]`, unanswered)).trim().toLowerCase() === "yes";
}

/**
 * Asks for a yes before a change that cannot be undone; with `yes` it asks nothing.
 * @throws KcoreError QUESTION_UNANSWERED without a terminal, CONFIRM_DENIED when the answer is not yes
 */
export async function requireYes(question: string, { yes = false }: { readonly yes?: boolean }): Promise<void> {
  const unanswered = {
    message: `no terminal to answer at: ${question}`,
    hint: "run it in a terminal, or give --yes",
  };
  if (yes || (await isConfirmed(question, unanswered))) return;
  throw new KcoreError({ code: "CONFIRM_DENIED", message: "nothing was changed" }, { exitCode: exitCodes.failed });
}

/**
 * A login's password, from the first line of a file or asked for without echo. `whom`: `root of n1`, for the question.
 * @throws KcoreError QUESTION_UNANSWERED, FILE_UNREADABLE, FILE_UNTRUSTED
 */
export async function passwordOf(whom: string, file: string | undefined): Promise<string> {
  if (file !== undefined) return readPassphraseFile(file, "password");
  const hint = "--password-file FILE";
  const message = `the password of ${whom} is wanted, and there is no terminal to give it at`;
  const answer = await requireAnswer(`Password of ${whom}`, { message, hint }, { secret: true });
  if (answer !== "") return answer;
  throw new KcoreError({ code: "QUESTION_UNANSWERED", message: `no password of ${whom} was given`, hint });
}

/** Ends kcore after Ctrl-C at an open question. */
export function leave(): never {
  process.stdin.setRawMode(false);
  process.stderr.write("\n");
  process.exit(exitCodes.interrupted);
}
