import { appendFileSync } from "node:fs";
import { isatty } from "node:tty";
import type { LaunchedRun } from "#engine/run/launch-run.ts";
import type { RunFolder } from "#engine/run/run-folder.ts";

/** Whether a terminal is there for a view, which then must be able to leave the run. */
export function hasTerminal(): boolean {
  return [0, 1, 2].some((descriptor) => isatty(descriptor));
}

const driven: Promise<void>[] = [];

/** Drives a run in this process. A view in this process follows the run as any other, and may leave it. */
export function driveHere(folder: RunFolder, passphrase?: string): LaunchedRun {
  // Signals concern the view, which may have left.
  for (const signal of ["SIGHUP", "SIGINT"] as const) process.on(signal, () => undefined);
  const { promise: ready, resolve: onListening } = Promise.withResolvers<void>();
  let hasExited = false;
  const drive = async (): Promise<void> => {
    const before = process.cwd();
    process.chdir(folder.project);
    try {
      const { driveRun } = await import("./drive-run.ts");
      await driveRun(folder, { passphrase: Promise.resolve(passphrase), onListening });
    } catch (error) {
      // A view shows the end of this log as the reason.
      appendFileSync(folder.processLog, `${(error as Error).stack ?? String(error)}\n`, { mode: 0o600 });
    } finally {
      hasExited = true;
      onListening();
      process.chdir(before);
    }
  };
  const ended = drive();
  driven.push(ended);
  return { hasExited: () => hasExited, ready, ended };
}

/** Waits for the runs that this process drives; false if there were none. */
export async function awaitDriven(): Promise<boolean> {
  await Promise.allSettled(driven);
  return driven.length > 0;
}
