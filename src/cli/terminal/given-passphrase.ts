import { closeSync, readFileSync } from "node:fs";

let given: string | undefined;

/**
 * Takes the CA's passphrase out of the environment before anything else can see it: from the pipe that `bin/kcore` made
 * of KCORE_CA_PASSPHRASE, or from that variable itself where the launcher was not used.
 */
export function takePassphraseFromEnvironment(): void {
  const fd = Number(process.env["KCORE_PASSPHRASE_FD"]);
  delete process.env["KCORE_PASSPHRASE_FD"];
  given = process.env["KCORE_CA_PASSPHRASE"] ?? (fd > 2 ? readAndClose(fd) : undefined);
  delete process.env["KCORE_CA_PASSPHRASE"];
}

/** The passphrase as far as it was given beforehand: a file wins over the environment. */
export async function givenPassphrase(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return given;
  const { readPassphraseFile } = await import("./passphrase-file.ts");
  return readPassphraseFile(file);
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
      // It was never open: KCORE_PASSPHRASE_FD was set by hand.
    }
  }
}
