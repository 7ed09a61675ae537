import { questionText, threeTries } from "#errors/three-tries.ts";
import { requireAnswer, requireNewSecret } from "../terminal/ask-operator.ts";
import { givenPassphrase } from "../terminal/given-passphrase.ts";

/**
 * Opens the CA's keys by the passphrase of the file or the environment, else by a typed one, with three attempts.
 * @throws KcoreError QUESTION_UNANSWERED, FILE_UNREADABLE, FILE_UNTRUSTED, and the errors of `open`
 */
export async function withCaPassphrase<T>(
  file: string | undefined,
  open: (passphrase: string) => Promise<T>,
): Promise<T> {
  const given = await givenPassphrase(file);
  if (given !== undefined) return open(given);
  return threeTries(
    async (again) =>
      open(await requireAnswer(questionText("Passphrase of the CA's keys", again), unanswered, { secret: true })),
    ["PKI_PASSPHRASE_WRONG"],
  );
}

/**
 * A passphrase for new keys, from the file or the environment, else typed twice. @throws KcoreError QUESTION_UNANSWERED,
 * USAGE, FILE_UNREADABLE, FILE_UNTRUSTED
 */
export async function newCaPassphrase(file: string | undefined): Promise<string> {
  return (await givenPassphrase(file)) ?? requireNewSecret("New passphrase of the CA's keys", unanswered);
}

const unanswered = {
  message: "there is no terminal to type the passphrase of the CA's keys at",
  hint: "give --passphrase-file FILE or KCORE_CA_PASSPHRASE",
};
