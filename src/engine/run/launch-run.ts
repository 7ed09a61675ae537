import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { RunFolder } from "./run-folder.ts";

export interface LaunchOptions {
  readonly folder: RunFolder;
  /** The program and arguments that serve a run; the run's id and project are added. */
  readonly program: readonly [string, ...string[]];
  /** Handed over through a pipe: never in argv, environment or file. */
  readonly passphrase?: string;
}

/**
 * Starts the run's own process, in a session of its own, so that neither a closed terminal nor Ctrl-C reaches it.
 * Returns at once; the process appears behind the run's socket.
 */
export function launchRun({ folder, program, passphrase }: LaunchOptions): {
  readonly hasExited: () => boolean;
} {
  const [command, ...words] = program;
  const log = openSync(folder.processLog, "a", 0o600);
  try {
    const child = spawn(command, [...words, folder.id, folder.project], {
      cwd: folder.project,
      detached: true,
      stdio: ["pipe", log, log],
    });
    let exited = false;
    child.on("exit", () => (exited = true));
    child.on("error", () => (exited = true));
    // It may be gone before it read its input; then it said why in its log.
    child.stdin?.on("error", () => undefined);
    // Only once it is written; an open pipe would keep this process until the other one ends.
    child.stdin?.end(JSON.stringify(passphrase === undefined ? {} : { passphrase }), () => child.stdin?.destroy());
    child.unref();
    return { hasExited: () => exited };
  } finally {
    closeSync(log);
  }
}
