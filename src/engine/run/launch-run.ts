import { spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, closeSync, openSync } from "node:fs";
import type { Readable } from "node:stream";
import type { RunFolder } from "./run-folder.ts";
import { reportUnwritable } from "./unwritable.ts";

export interface LaunchOptions {
  readonly folder: RunFolder;
  /** The program and arguments that drive a run; the run's id and project are added. */
  readonly program: readonly [string, ...string[]];
  /** Handed over through a pipe: never in argv, environment or file. */
  readonly passphrase?: string;
}

/** The process that drives a run, for the command that started the run. */
export interface LaunchedRun {
  readonly hasExited: () => boolean;
  /** Resolves when the run's socket is there, or never will be; absent: the process does not report that. */
  readonly ready?: Promise<void>;
  /** Resolves when the run is over; present if this process drives it. */
  readonly ended?: Promise<void>;
}

/** A process that reads from its stdin which run to drive, and closes descriptor 3 as soon as the run's socket exists. */
export type WarmProcess = ChildProcess;

let keptWarm: WarmProcess | undefined;

/** Keeps a warm process for the next launched run. The warm process does not keep this process alive, and ends with it if no run used it. */
export function keepWarm(warm: WarmProcess): void {
  keptWarm = warm;
  warm.unref();
  warm.on("error", () => (keptWarm = undefined));
  warm.on("exit", () => (keptWarm = undefined));
  for (const pipe of warm.stdio) {
    pipe?.on("error", () => undefined);
    (pipe as unknown as { unref(): void } | null)?.unref();
  }
}

/**
 * Starts the run's own process, in a session of its own, so that neither a closed terminal nor Ctrl-C reaches it.
 * Returns at once; later the process listens on the run's socket.
 * @throws KcoreError RUN_RECORD_UNWRITABLE
 */
export function launchRun({ folder, program, passphrase }: LaunchOptions): LaunchedRun {
  const warm = keptWarm;
  keptWarm = undefined;
  // A warm process may have failed or ended although its `error` or `exit` event has not come yet.
  if (warm?.pid !== undefined && warm.exitCode === null && warm.signalCode === null)
    return handOver(warm, folder, passphrase);
  const [command, ...args] = program;
  const log = reportUnwritable(folder.path, () => openSync(folder.processLog, "a", 0o600));
  try {
    const child = spawn(command, [...args, folder.id, folder.project], {
      cwd: folder.project,
      detached: true,
      stdio: ["pipe", log, log],
    });
    let exited = false;
    child.on("exit", () => (exited = true));
    child.on("error", () => (exited = true));
    // The process may be gone before it read its input; its log has the reason.
    child.stdin?.on("error", () => undefined);
    // Destroyed once the input is written: an open pipe would keep this process alive until the other one ends.
    child.stdin?.end(JSON.stringify(passphrase === undefined ? {} : { passphrase }), () => child.stdin?.destroy());
    child.unref();
    return { hasExited: () => exited };
  } finally {
    closeSync(log);
  }
}

function handOver(warm: WarmProcess, folder: RunFolder, passphrase: string | undefined): LaunchedRun {
  let exited = false;
  // On `close`, not on `exit`: output written before the exit may still be unread.
  warm.on("close", () => (exited = true));
  warm.on("error", () => (exited = true));
  // Only errors from before the process opens its own log arrive here.
  warm.stderr?.on("data", (text: Buffer) => addToLog(folder, text));
  const readiness = warm.stdio[3] as Readable;
  const ready = new Promise<void>((resolve) => {
    readiness.once("close", resolve);
    readiness.resume();
  });
  const { id, project } = folder;
  warm.stdin?.end(JSON.stringify({ id, project, ...(passphrase === undefined ? {} : { passphrase }) }), () =>
    warm.stdin?.destroy(),
  );
  return { hasExited: () => exited, ready };
}

/** Appends to the log of a run's process, whose end a view shows as the reason why a run died. */
export function addToLog({ processLog }: RunFolder, text: string | Uint8Array): void {
  try {
    appendFileSync(processLog, text, { mode: 0o600 });
  } catch {
    // On a full disk the text is lost; `hasExited` still reports the end.
  }
}
