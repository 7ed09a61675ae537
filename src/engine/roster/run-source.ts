import { spawnSync } from "node:child_process";
import { KcoreError } from "#errors/problem.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/regular-file.ts";

const usualLimitMs = 30_000;

/** A program for Node.js that fetches the address in its argument, and refuses redirects, since only that address was reviewed. */
const fetchProgram = `fetch(process.argv[1], { redirect: "error", signal: AbortSignal.timeout(${usualLimitMs - 2000}), headers: { accept: "application/yaml, application/json" } })
  .then(async (answer) => {
    if (!answer.ok) throw new Error("it answers " + answer.status + " " + answer.statusText);
    let bytes = 0;
    for await (const chunk of answer.body) {
      bytes += chunk.length;
      if (bytes > ${MAX_ROSTER_BYTES}) throw new Error("it sends more than ${MAX_ROSTER_BYTES / 2 ** 20} MiB");
      process.stdout.write(chunk);
    }
  })
  .catch((error) => { process.stderr.write((error.cause?.message ?? error.message) + "\\n"); process.exitCode = 1; });`;

/**
 * The output of a roster's source: a program, run without a shell and without arguments in the project, or an address. A separate
 * process fetches an address, since rosters are read synchronously. Beyond 30 s or 8 MiB kcore ends the process and its children.
 * @throws KcoreError ROSTER_SOURCE, with the end of the process's stderr
 */
export function runSource({
  shown,
  project,
  path,
  url,
  limit = usualLimitMs,
}: {
  /** The source's name in messages. */
  readonly shown: string;
  readonly project: string;
  readonly path: string;
  readonly url?: string;
  /** Milliseconds. */
  readonly limit?: number;
}): Uint8Array {
  const { KCORE_CA_PASSPHRASE: _, KCORE_PASSPHRASE_FD: __, ...env } = process.env;
  const [command, args] =
    url === undefined ? [path, []] : [process.execPath, ["--use-system-ca", "-e", fetchProgram, url]];
  const { stdout, stderr, status, signal, error, pid } = spawnSync(command, args, {
    cwd: project,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: limit,
    killSignal: "SIGKILL",
    maxBuffer: MAX_ROSTER_BYTES,
    // A process group of its own, so that `endGroup` reaches its children.
    ...({ detached: true } as object),
  });
  if (error || signal !== null) killGroup(pid);
  const why = error
    ? reasonOf(error, limit)
    : signal !== null
      ? `it ended by ${signal}`
      : status !== 0
        ? `it exits with ${status ?? "nothing"}`
        : undefined;
  if (why === undefined && stdout.toString("latin1").trim() !== "") return stdout;
  const detail = (stderr ?? Buffer.alloc(0)).toString("utf8").trim().slice(-4000);
  throw new KcoreError({
    code: "ROSTER_SOURCE",
    message: `${shown} gave no roster: ${why ?? "it printed nothing"}`,
    ...(detail !== "" && { detail }),
    ...(why === undefined && { hint: "a roster without nodes is nodes: {}" }),
  });
}

function reasonOf({ code, message }: NodeJS.ErrnoException, limit: number): string {
  if (code === "ETIMEDOUT") return `it took longer than ${limit / 1000} s`;
  if (code === "ENOBUFS") return `it printed more than ${MAX_ROSTER_BYTES / 2 ** 20} MiB`;
  return code === "EACCES" || code === "ENOENT" || code === "ENOEXEC"
    ? `it cannot be run (${code}): has it a first line such as #!/bin/sh?`
    : message;
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined || pid <= 0) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group has no process left.
  }
}
