import { homedir } from "node:os";
import { dirname } from "node:path";
import { identityFile } from "#engine/encrypted-values/identities.ts";
import { Secret } from "#engine/step/secret.ts";
import { KcoreError } from "#errors/problem.ts";
import { makeFolder } from "#base/folder.ts";
import { createFile } from "#base/file.ts";
import { writeError } from "../project/write-asked.ts";
import { requireNewSecret } from "../terminal/ask-operator.ts";
import { printResult } from "../terminal/format-result.ts";

export interface KeygenFlags {
  readonly file?: string;
  readonly postQuantum?: boolean;
  readonly passphrase?: boolean;
  readonly output: "text" | "json";
}

const unanswered = {
  message: "no passphrase was given for the new identity",
  hint: "run it in a terminal, or without --passphrase",
};

/** `kcore secrets keygen`: makes an identity in a file that only its owner may read, and prints its recipient. */
export async function makeIdentity({
  file: given,
  postQuantum = false,
  passphrase = false,
  output,
}: KeygenFlags): Promise<void> {
  const file = given ?? identityFile(process.env, homedir());
  const { generate, lock, recipientOf } = await import("#engine/encrypted-values/age.ts");
  const identity = new Secret(await generate({ postQuantum }));
  const recipient = (await recipientOf(identity.reveal())) ?? "";
  const content = `# created: ${new Date().toISOString()}\n# public key: ${recipient}\n${identity.reveal()}\n`;
  const written = passphrase
    ? await lock(content, await requireNewSecret("New passphrase of the identity", unanswered))
    : content;
  await makeFolder(dirname(file), { mode: 0o700 });
  try {
    await createFile(file, written);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw writeError(file, cause);
    throw new KcoreError(
      {
        code: "SECRET_IDENTITY",
        message: `${file} is there already; values sealed to it could never be opened without it`,
        hint: "kcore secrets recipients add NAME takes the one that is there; --file FILE makes another one",
      },
      { cause },
    );
  }
  printResult({ file, recipient }, output, () => `${recipient}\n`);
  if (output === "text") {
    process.stderr.write(`the identity is in ${file}; keep a copy where only you can read it\n`);
    process.stderr.write("next, by an operator who may: kcore secrets recipients add NAME RECIPIENT\n");
  }
}
