import { KcoreError } from "#errors/problem.ts";
import { leave } from "./confirm.ts";
import { canPrompt, promptLine } from "./prompt.ts";

/**
 * A login's password, from the first line of a file or asked for unseen; kept nowhere. `whom`: `root of n1`, for the question.
 * @throws KcoreError QUESTION_UNANSWERED, FILE_UNREADABLE, FILE_UNTRUSTED
 */
export async function passwordOf(whom: string, file: string | undefined): Promise<string> {
  if (file !== undefined) {
    const { readPassphraseFile } = await import("./passphrase-file.ts");
    return readPassphraseFile(file, "password");
  }
  const hint = "--password-file FILE";
  if (!canPrompt())
    throw new KcoreError({
      code: "QUESTION_UNANSWERED",
      message: `the password of ${whom} is wanted, and nobody is there to give it`,
      hint,
    });
  const { signal } = new AbortController();
  const answer = await promptLine({ text: `Password of ${whom}`, secret: true, signal, onInterrupt: leave });
  if (answer === undefined || answer === "")
    throw new KcoreError({ code: "QUESTION_UNANSWERED", message: `no password of ${whom} was given`, hint });
  return answer;
}
