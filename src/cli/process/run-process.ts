import { closeSync, existsSync, openSync } from "node:fs";
import { text } from "node:stream/consumers";
import { join } from "node:path";
import { knownSecrets } from "#engine/step/secret.ts";
import { conductRun } from "#engine/run/conduct-run.ts";
import type { Notifier } from "#engine/run/notify.ts";
import { trustOfProcess } from "#engine/project/project.ts";
import { changeHeader, readHeader, runFolder, type RunFolder, type RunHeader } from "#engine/run/run-folder.ts";
import { exitCodes, type ExitCode } from "#errors/problem.ts";
import { gitState } from "./git-state.ts";
import { recordContent } from "./refuse-changed-project.ts";
import { maskInRecord, loadParts } from "./load-run-parts.ts";

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
  const parts = loadParts();
  parts.catch(() => undefined);
  if (isWarm) await parts;
  const handover = readHandover();
  const { id, project = "" } = isWarm ? await handover : { id: words[0], project: words[1] };
  // The command line started no run after all.
  if (id === undefined) return exitCodes.done;
  const folder = runFolder(project, id);
  if (isWarm) adoptRun(folder);
  const state = gitState(project);
  const header = await readHeader(folder);
  return conductRun({
    folder,
    header,
    onListening: () => isWarm && closeSync(READY_FD),
    secrets: knownSecrets,
    notifier: () => notifierOf(header, project),
    perform: async (stage) => {
      // Record the project's content before the run reads any of it.
      if (!stage.earlier.some(({ type }) => type === "run.started")) recordContent(folder);
      const { passphrase } = await handover;
      const at = await state;
      if (Object.keys(at).length > 0) changeHeader(folder, at);
      return (await parts)({
        stage,
        project,
        ...at,
        ...(passphrase !== undefined && { passphrase: maskInRecord(passphrase) }),
      });
    },
  });
}

/** The notifier of a run; undefined for dry runs, for `exec --lock`, and without notices in the project. */
async function notifierOf({ id, who, request }: RunHeader, project: string): Promise<Notifier | undefined> {
  if (request.dryRun || request.what.kind === "exec") return undefined;
  if (!existsSync(join(project, "notify.yaml"))) return undefined;
  const [{ readNotices }, { Notifier }] = await Promise.all([
    import("#engine/orchestrate/notices.ts"),
    import("#engine/run/notify.ts"),
  ]);
  const notices = readNotices(project, trustOfProcess(process.env));
  return notices.length === 0 ? undefined : new Notifier(notices, { project, run: id, command: request.command, who });
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
