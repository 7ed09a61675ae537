import { homedir } from "node:os";
import { dirname } from "node:path";
import { identityFile } from "#engine/sealed/identities.ts";
import { Secret } from "#engine/step/secret.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { makeFolder } from "#base/folder.ts";
import { createFile } from "#base/file.ts";
import { unwritten } from "../project/write-asked.ts";
import { printJson } from "../terminal/print-json.ts";
import { askSecret } from "./ask.ts";

export interface KeygenFlags {
  readonly file?: string;
  readonly postQuantum?: boolean;
  readonly passphrase?: boolean;
  readonly output: "text" | "json";
}

/** `kcore secrets keygen`: a new identity in a file that only its owner may read; prints its recipient. */
export async function makeIdentity({
  file: given,
  postQuantum = false,
  passphrase = false,
  output,
}: KeygenFlags): Promise<void> {
  const file = given ?? identityFile(process.env, homedir());
  const { generate, lock, recipientOf } = await import("#engine/sealed/age.ts");
  const identity = new Secret(await generate({ postQuantum }));
  const recipient = (await recipientOf(identity.reveal())) ?? "";
  const content = `# created: ${new Date().toISOString()}\n# public key: ${recipient}\n${identity.reveal()}\n`;
  const written = passphrase ? await lock(content, await newPassphrase()) : content;
  await makeFolder(dirname(file), { mode: 0o700 });
  try {
    await createFile(file, written);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw unwritten(file, cause);
    throw new KcoreError(
      {
        code: "SECRET_IDENTITY",
        message: `${file} is there already; what is sealed to it could never be opened without it`,
        hint: "kcore secrets recipients add NAME takes the one that is there; --file FILE makes another one",
      },
      { cause },
    );
  }
  if (output === "json") process.stdout.write(`${printJson({ file, recipient }, 2)}\n`);
  else {
    process.stdout.write(`${recipient}\n`);
    process.stderr.write(`the identity is in ${file}; keep a copy where only you can read it\n`);
    process.stderr.write("next, by somebody who may: kcore secrets recipients add NAME RECIPIENT\n");
  }
}

async function newPassphrase(): Promise<string> {
  const first = await askSecret("New passphrase of the identity");
  if (first === undefined || first === "")
    throw new KcoreError({
      code: "QUESTION_UNANSWERED",
      message: "nobody gave a passphrase for the new identity",
      hint: "run it in a terminal, or without --passphrase",
    });
  if ((await askSecret("Once more")) === first) return first;
  throw usageError("the two passphrases differ", "try again");
}
