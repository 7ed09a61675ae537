import { KcoreError } from "#errors/problem.ts";
import { leave } from "../confirm.ts";
import { givenPassphrase } from "../passphrase.ts";
import { canPrompt, promptLine } from "../prompt.ts";

/** The passphrase of the CA's keys: given beforehand, else asked for, once. @throws KcoreError QUESTION_UNANSWERED */
export async function caPassphrase(file: string | undefined): Promise<string> {
  const given = await givenPassphrase(file);
  if (given !== undefined) return given;
  if (!canPrompt())
    throw new KcoreError({
      code: "QUESTION_UNANSWERED",
      message: "nobody is there to type the passphrase of the CA's keys",
      hint: "give --passphrase-file FILE or KCORE_CA_PASSPHRASE",
    });
  const signal = new AbortController().signal;
  return (await promptLine({ text: "Passphrase of the CA's keys", secret: true, signal, onInterrupt: leave })) ?? "";
}
