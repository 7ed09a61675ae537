import { closeSync, openSync } from "node:fs";
import { text } from "node:stream/consumers";
import { driveRun, loadRun } from "./drive-run.ts";
import { runFolder, type RunFolder } from "#engine/run/run-folder.ts";
import { exitCodes, type ExitCode } from "#errors/problem.ts";

/**
 * The run's own process: `run-main ID PROJECT`. Without words it is a warm process, started before its run is known:
 * then stdin names the run. Secrets come by stdin, too. Returns the run's exit code.
 */
export async function serveRun(words: readonly string[]): Promise<ExitCode> {
  // A closed terminal and Ctrl-C concern the views only.
  process.on("SIGHUP", () => undefined);
  process.on("SIGINT", () => undefined);
  const isWarm = words.length === 0;
  // The parts of the engine load while the record is opened; in a warm process, before its run is known.
  const parts = loadRun();
  if (isWarm) await parts;
  const handover = readHandover();
  const { id, project = "" } = isWarm ? await handover : { id: words[0], project: words[1] };
  // The command line started no run after all.
  if (id === undefined) return exitCodes.done;
  const folder = runFolder(project, id);
  if (isWarm) adoptRun(folder);
  const passphrase = handover.then((given) => given.passphrase);
  return driveRun(folder, { parts, passphrase, onListening: () => isWarm && closeSync(READY_FD) });
}

interface Handover {
  readonly id?: string;
  readonly project?: string;
  readonly passphrase?: string;
}

async function readHandover(): Promise<Handover> {
  const handover = await text(process.stdin);
  return handover === "" ? {} : (JSON.parse(handover) as Handover);
}

/** The descriptor that a warm process closes once views can connect. */
const READY_FD = 3;

/** Gives a warm process the folder, the log and the name in `ps` of its run. */
function adoptRun({ id, project, processLog }: RunFolder): void {
  process.chdir(project);
  for (const descriptor of [1, 2]) reopen(descriptor, processLog);
  process.title = `${process.argv[1] ?? "run-main"} ${id} ${project}`;
}

/**
 * Makes an open descriptor append to the file. open(2) takes the lowest free descriptor. If a background thread has
 * taken this descriptor to read a file, the loop waits until the thread closes it.
 */
function reopen(descriptor: number, file: string): void {
  closeSync(descriptor);
  const others: number[] = [];
  for (;;) {
    const got = openSync(file, "a", 0o600);
    if (got === descriptor) break;
    if (others.push(got) === 100) throw new Error(`descriptor ${descriptor} was taken`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  }
  others.forEach((other) => closeSync(other));
}
