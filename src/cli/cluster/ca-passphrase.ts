import { questionText, threeTries } from "#errors/three-tries.ts";
import { requireAnswer, requireNewSecret } from "../terminal/confirm.ts";
import { givenPassphrase } from "../terminal/given-passphrase.ts";

/**
 * Opens the CA's keys by the given passphrase, else by a typed one, with three attempts.
 * @throws KcoreError QUESTION_UNANSWERED, and the errors of `open`
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

/** A passphrase for new keys: given beforehand, else asked for, twice. @throws KcoreError QUESTION_UNANSWERED, USAGE */
export async function newCaPassphrase(file: string | undefined): Promise<string> {
  return (await givenPassphrase(file)) ?? requireNewSecret("New passphrase of the CA's keys", unanswered);
}

const unanswered = {
  message: "there is no terminal to type the passphrase of the CA's keys at",
  hint: "give --passphrase-file FILE or KCORE_CA_PASSPHRASE",
};
