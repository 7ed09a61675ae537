import { addToLog, type LaunchedRun } from "#engine/run/launch-run.ts";
import type { RunFolder } from "#engine/run/run-folder.ts";

let isAllowed = false;
const driven: Promise<void>[] = [];

/** Lets this process drive the runs that it starts. Without a terminal there is no view that must be able to leave them. */
export function allowDriving(): void {
  isAllowed = true;
}

/** Whether this process drives the runs that it starts. */
export function mayDrive(): boolean {
  return isAllowed;
}

/** Whether this process has driven a run. */
export function hasDriven(): boolean {
  return driven.length > 0;
}

/** Drives a run in this process. A view in this process follows the run as any other, and may leave it. */
export function driveHere(folder: RunFolder, passphrase?: string): LaunchedRun {
  const { promise: ready, resolve: onListening } = Promise.withResolvers<void>();
  let hasExited = false;
  const ended = drive(folder, passphrase, onListening).finally(() => {
    hasExited = true;
    onListening();
  });
  driven.push(ended);
  return { hasExited: () => hasExited, ready, ended };
}

async function drive(folder: RunFolder, passphrase: string | undefined, onListening: () => void): Promise<void> {
  const log = (error: unknown): void => addToLog(folder, `${(error as Error).stack ?? String(error)}\n`);
  // Signals concern the view, which may have left.
  const ignore = (): void => undefined;
  for (const signal of ["SIGHUP", "SIGINT"] as const) process.on(signal, ignore);
  process.on("uncaughtExceptionMonitor", log);
  const before = process.cwd();
  try {
    process.chdir(folder.project);
    const { driveRun } = await import("./drive-run.ts");
    await driveRun(folder, { passphrase: Promise.resolve(passphrase), onListening });
  } catch (error) {
    log(error);
  } finally {
    process.chdir(before);
    process.off("uncaughtExceptionMonitor", log);
    for (const signal of ["SIGHUP", "SIGINT"] as const) process.off(signal, ignore);
  }
}

/** Waits for the runs that this process drives; false if there were none. */
export async function awaitDriven(): Promise<boolean> {
  await Promise.all(driven);
  return hasDriven();
}
