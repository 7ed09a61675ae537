import type { Stats } from "node:fs";
import { join } from "node:path";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { questionText } from "#errors/three-tries.ts";
import { trustOfProcess } from "#engine/project/project.ts";
import { Secret } from "#engine/step/secret.ts";
import { readBytes } from "#engine/yaml/regular-file.ts";

const MAX_IDENTITY_BYTES = 64 * 1024;
type Environment = Readonly<Record<string, string | undefined>>;

/** The file of this user's age identities: `KCORE_AGE_IDENTITY`, else `age-identity.txt` in `~/.config/kcore` (XDG_CONFIG_HOME). */
export function identityFile(env: Environment, home: string): string {
  const { KCORE_AGE_IDENTITY: named = "", XDG_CONFIG_HOME: config = "" } = env;
  if (named !== "") return named.startsWith("~/") ? join(home, named.slice(2)) : named;
  return join(config === "" ? join(home, ".config") : config, "kcore", "age-identity.txt");
}

/**
 * The identities in a file as age-keygen(1) writes it, or in such a file encrypted by a passphrase (`age -p`), for which `ask` is called.
 * @throws KcoreError SECRET_IDENTITY when the file is missing, open to others, another user's, not opened, or not of valid identities; FILE_TOO_LARGE
 */
export async function readIdentities(
  file: string,
  ask: (text: string) => Promise<string | undefined>,
): Promise<readonly string[]> {
  const bytes = readIdentityFile(file);
  const text = isLocked(bytes) ? await unlockFile(file, bytes, ask) : bytes.toString("utf8");
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  const identities = lines.filter((line) => line !== "" && !line.startsWith("#"));
  // A Secret registers its value to be masked in all output.
  for (const identity of identities) new Secret(identity);
  const { recipientOf } = await import("./age.ts");
  const recipients = await Promise.all(identities.map(recipientOf));
  if (identities.length > 0 && recipients.every((recipient) => recipient !== undefined)) return identities;
  const isSsh = text.includes("PRIVATE KEY-----");
  throw refused(
    `the identity file ${file} holds ${isSsh ? "an SSH key" : identities.length === 0 ? "no identity" : "something else than age identities"}`,
    isSsh
      ? "SSH keys open nothing here: kcore secrets keygen makes an age identity"
      : "lines of AGE-SECRET-KEY-…, as kcore secrets keygen makes them",
  );
}

function readIdentityFile(file: string): Buffer {
  try {
    return readBytes(file, { maxBytes: MAX_IDENTITY_BYTES, check: refuseUnsafe });
  } catch (cause) {
    if (!(cause instanceof KcoreError) || cause.problems[0]?.code !== "FILE_UNREADABLE") throw cause;
    throw refused(
      `there is no identity to open sealed values with: ${cause.problems[0].message}`,
      "kcore secrets keygen makes one; KCORE_AGE_IDENTITY=FILE names another",
      cause,
    );
  }
}

function refuseUnsafe(name: string, { mode, uid }: Stats): void {
  if (!trustOfProcess(process.env).uids.includes(uid))
    throw refused(`the identity file ${name} belongs to the user ${uid}`, `chown it`);
  if ((mode & 0o077) !== 0) throw refused(`others may read the identity file ${name}`, `chmod 600 ${name}`);
}

/** Whether a file is encrypted by age, armored or not. */
export function isLocked(bytes: Buffer): boolean {
  const start = bytes.subarray(0, 40).toString("latin1");
  return start.startsWith("age-encryption.org/v1") || start.startsWith("-----BEGIN AGE ENCRYPTED FILE-----");
}

async function unlockFile(
  file: string,
  bytes: Buffer,
  ask: (text: string) => Promise<string | undefined>,
): Promise<string> {
  const { unlock } = await import("./age.ts");
  for (let tries = 1; tries <= 3; tries++) {
    const passphrase = await ask(questionText(`Passphrase of the identity ${file}`, tries > 1));
    if (passphrase === undefined || passphrase === "")
      throw refused(`no passphrase was given for the identity file ${file}`, "kcore asks for it at a terminal");
    const text = await unlock(bytes, passphrase);
    if (text !== undefined) return text;
  }
  throw refused(`the passphrase does not open the identity file ${file}`);
}

function refused(message: string, hint?: string, cause?: unknown): KcoreError {
  const problem: Problem = { code: "SECRET_IDENTITY", message, hint };
  return new KcoreError(problem, { cause });
}
