import { readFile, stat } from "node:fs/promises";
import { KcoreError } from "#errors/problem.ts";

/**
 * The first line of a file with a secret, which only its owner may read. `what`: what it holds, for messages.
 * @throws KcoreError FILE_UNREADABLE, FILE_UNTRUSTED
 */
export async function readPassphraseFile(file: string, what = "passphrase"): Promise<string> {
  let text: string;
  let mode: number;
  try {
    ({ mode } = await stat(file));
    text = await readFile(file, "utf8");
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? "";
    throw new KcoreError(
      { code: "FILE_UNREADABLE", message: `cannot read the ${what} file ${file} (${reason})` },
      { cause },
    );
  }
  const isPipe = (mode & 0o170000) === 0o010000;
  if (!isPipe && (mode & 0o077) !== 0)
    throw new KcoreError({
      code: "FILE_UNTRUSTED",
      message: `others may read the ${what} file ${file}`,
      hint: `chmod 600 ${file}`,
    });
  const line = text.split("\n", 1)[0] ?? "";
  if (line === "") throw new KcoreError({ code: "FILE_UNREADABLE", message: `the ${what} file ${file} is empty` });
  return line;
}
