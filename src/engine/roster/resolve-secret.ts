import { homedir } from "node:os";
import { join } from "node:path";
import type { Stats } from "node:fs";
import { run } from "#base/process.ts";
import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { Secret } from "#engine/step/secret.ts";
import { readBytes } from "#engine/yaml/regular-file.ts";
import type { SecretReference } from "#engine/params/secret-reference.ts";

const MAX_SECRET_BYTES = 64 * 1024;
const COMMAND_LIMIT_MS = 30_000;

/** The means to read secrets; passed in, so that tests can replace them. */
export interface SecretSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Bytes of a file; `~/` is the user's home. */
  readonly readFile: (path: string) => Uint8Array;
  /** Runs a command line by `/bin/sh -c`, at most 30 s, and gives its stdout; rejects with KcoreError. */
  readonly run: (command: string) => Promise<Uint8Array>;
  /** Opens a sealed value; rejects with KcoreError. */
  readonly open: (sealed: string) => Promise<Uint8Array>;
}

/**
 * Reads the value of a reference. One line break at the end is dropped. An empty secret is an error, since it is rarely
 * intended.
 * @throws KcoreError SECRET_UNREADABLE, or the problems of opening a sealed value, at the reference's place; never with the secret in it
 */
export async function resolveSecret(
  reference: SecretReference,
  sources: SecretSources,
  at?: SourcePosition,
): Promise<Secret> {
  const fail = (message: string, hint?: string, cause?: unknown): never => {
    throw new KcoreError({ code: "SECRET_UNREADABLE", message, at, ...(hint && { hint }) }, { cause });
  };
  const name = referenceName(reference);
  let text: string;
  try {
    text = await readText(reference, sources);
  } catch (cause) {
    if (!(cause instanceof KcoreError)) throw cause;
    // The error of opening a sealed value already names its fault.
    if ("age" in reference)
      throw new KcoreError(
        cause.problems.map((problem) => ({ at, ...problem })),
        { cause },
      );
    const [first] = cause.problems;
    return fail(`the secret ${name} cannot be read: ${first?.message ?? ""}`, first?.hint, cause);
  }
  const value = text.replace(/\r?\n$/, "");
  if (value === "") fail(`the secret ${name} is empty`);
  if (value.includes("\0")) fail(`the secret ${name} holds a NUL byte`);
  return new Secret(value);
}

/** A reference in one line, for messages: `env:NAME`, `file:PATH`, `command:CMD`, or that it is sealed. */
export function referenceName(reference: SecretReference): string {
  if ("age" in reference) return "that is sealed here";
  return Object.entries(reference)
    .map(([kind, rest]) => `${kind}:${rest}`)
    .join("");
}

async function readText(reference: SecretReference, { env, readFile, run, open }: SecretSources): Promise<string> {
  if ("env" in reference) {
    const value = env[reference.env];
    if (value !== undefined) return value;
    throw unreadable(`the environment has no ${reference.env}`, `export ${reference.env}`);
  }
  const bytes =
    "file" in reference
      ? readFile(reference.file)
      : await ("age" in reference ? open(reference.age) : run(reference.command));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw unreadable("it is not UTF-8 text");
  }
}

function unreadable(message: string, hint?: string): KcoreError {
  return new KcoreError({ code: "SECRET_UNREADABLE", message, ...(hint && { hint }) });
}

/** The value of a secret from this process's environment, this machine's files and commands, or sealed YAML. @throws as {@link resolveSecret} */
export async function readSecret(
  reference: SecretReference,
  open: SecretSources["open"],
  at?: SourcePosition,
): Promise<string> {
  const sources = { env: process.env, readFile: readSecretFile, run: runSecretCommand, open };
  const secret = await resolveSecret(reference, sources, at);
  return secret.reveal();
}

/** The bytes of a secret's file, at most 64 KiB, which others must not be able to read or write. @throws KcoreError */
export function readSecretFile(path: string): Uint8Array {
  const absolute = path.startsWith("~/") ? join(homedir(), path.slice(2)) : path;
  return readBytes(absolute, { name: path, maxBytes: MAX_SECRET_BYTES, check: refuseOpenToOthers });
}

function refuseOpenToOthers(name: string, { mode }: Stats): void {
  if ((mode & 0o006) !== 0) throw unreadable(`others can read or write ${name}`, `chmod o-rw ${name}`);
}

/**
 * The output of a command line, run by `/bin/sh -c` on this machine in a process group of its own, which is ended
 * after `limit` milliseconds. Its stderr is this process's, since `pass` and the like prompt there.
 * @throws KcoreError SECRET_UNREADABLE
 */
export async function runSecretCommand(command: string, limit: number = COMMAND_LIMIT_MS): Promise<Uint8Array> {
  const { bytes, code, signal, stopped } = await run(["/bin/sh", "-c", command], {
    limitMs: limit,
    mostBytes: MAX_SECRET_BYTES,
    ownGroup: true,
    inherit: "stderr",
  });
  if (stopped === "time") throw unreadable(`it took longer than ${limit / 1000} s`);
  if (stopped === "size") throw unreadable("it printed more than 64 KiB");
  if (code !== 0) throw unreadable(signal ? `it ended by ${signal}` : `it exits with ${code}`);
  return bytes;
}
