import { closeSync, readFileSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { KcoreError } from "#errors/problem.ts";

let environmentPassphrase: string | undefined;

/**
 * Takes the CA's passphrase out of the environment before a command runs. `bin/kcore` passes KCORE_CA_PASSPHRASE on
 * by a pipe; without that launcher the variable itself is read.
 */
export function takePassphraseFromEnvironment(): void {
  const fd = Number(process.env["KCORE_PASSPHRASE_FD"]);
  delete process.env["KCORE_PASSPHRASE_FD"];
  environmentPassphrase = process.env["KCORE_CA_PASSPHRASE"] ?? (fd > 2 ? readAndClose(fd) : undefined);
  delete process.env["KCORE_CA_PASSPHRASE"];
}

/** The passphrase from the file, else from the environment; undefined without either. @throws KcoreError FILE_UNREADABLE, FILE_UNTRUSTED */
export async function givenPassphrase(file: string | undefined): Promise<string | undefined> {
  return file === undefined ? environmentPassphrase : readPassphraseFile(file);
}

/**
 * The first line of a file with a secret, which only its owner may read, or of a pipe. `what`: the kind of secret, for messages.
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

function readAndClose(fd: number): string | undefined {
  try {
    return readFileSync(fd, "utf8").replace(/\n$/, "");
  } catch {
    return undefined;
  } finally {
    try {
      closeSync(fd);
    } catch {
      // The descriptor was never open: KCORE_PASSPHRASE_FD was set by hand.
    }
  }
}
