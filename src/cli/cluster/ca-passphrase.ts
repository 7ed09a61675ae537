import { KcoreError, usageError } from "#errors/problem.ts";
import { askedAgain, threeTries } from "#errors/three-tries.ts";
import { leave } from "../terminal/confirm.ts";
import { givenPassphrase } from "../terminal/given-passphrase.ts";
import { canPrompt, promptLine } from "../terminal/prompt.ts";

/**
 * Opens the CA's keys: by the passphrase that was given beforehand, else by one that is asked for, tried at once, three times in all.
 * @throws KcoreError QUESTION_UNANSWERED, and what `open` throws
 */
export async function withCaPassphrase<T>(
  file: string | undefined,
  open: (passphrase: string) => Promise<T>,
): Promise<T> {
  const given = await givenPassphrase(file);
  if (given !== undefined) return open(given);
  return threeTries(
    async (again) => open(await ask(askedAgain("Passphrase of the CA's keys", again))),
    ["PKI_PASSPHRASE_WRONG"],
  );
}

/** A passphrase for keys that are to be made: given beforehand, else asked for, twice. @throws KcoreError QUESTION_UNANSWERED, USAGE */
export async function newCaPassphrase(file: string | undefined): Promise<string> {
  const given = await givenPassphrase(file);
  if (given !== undefined) return given;
  const first = await ask("New passphrase of the CA's keys");
  if ((await ask("Once more")) === first) return first;
  throw usageError("the two passphrases differ", "try again");
}

async function ask(text: string): Promise<string> {
  if (!canPrompt())
    throw new KcoreError({
      code: "QUESTION_UNANSWERED",
      message: "nobody is there to type the passphrase of the CA's keys",
      hint: "give --passphrase-file FILE or KCORE_CA_PASSPHRASE",
    });
  const { signal } = new AbortController();
  return (await promptLine({ text, secret: true, signal, onInterrupt: leave })) ?? "";
}
