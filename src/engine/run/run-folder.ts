import { randomBytes, randomInt } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { replaceFileSync } from "#base/file.ts";
import { makeFolderSync } from "#base/folder.ts";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { KcoreError } from "#errors/problem.ts";
import { reportUnwritable } from "./unwritable.ts";
import type { ProcessMark } from "./process-mark.ts";

/** The files of one run's record; absolute paths, all below `.kcore/runs/ID/` of the project. */
export type RunFolder = Readonly<ReturnType<typeof runFolder>>;

/** `run.json`: the request, the operator, and the process that drives the run. Never a secret. */
export interface RunHeader {
  readonly version: 1;
  readonly id: string;
  readonly request: RunRequest;
  readonly nonce: string;
  readonly who: string;
  /** Milliseconds since the epoch. */
  readonly created: number;
  /** An operator at a terminal started the run, so a question may wait for an answer. */
  readonly attended: boolean;
  readonly revision?: string;
  readonly dirty?: boolean;
  /** For a resumed run: when its latest part began, and the milliseconds that the earlier parts took. */
  readonly part?: { readonly at: number; readonly ranBefore: number };
  /** The process that drives the run, or drove it last. */
  readonly process?: ProcessMark;
}

const idPattern = /^\d{8}-\d{6}-[0-9a-f]{4}$/;

/** Whether a name is a run's id: date, time and four hexadecimal digits. */
export function isRunId(name: string): boolean {
  return idPattern.test(name);
}

/** Names the files of a run. @throws KcoreError RUN_UNKNOWN for any other text than a run id */
export function runFolder(project: string, id: string) {
  if (!isRunId(id)) throw unknownRun(id);
  const path = join(project, ".kcore", "runs", id);
  return {
    id,
    project,
    path,
    header: join(path, "run.json"),
    events: join(path, "events.ndjson"),
    /** Reserved room: removed when the disk is full, so that the run's end can still be written. */
    reserve: join(path, "reserve"),
    nodeLogs: join(path, "nodes"),
    /** The project's content when the run began. */
    content: join(path, "project.json"),
    /** The output of the run's process: bugs, and in a process of its own last warnings and the stderr of commands that print secrets. */
    processLog: join(path, "process.log"),
  };
}

/** Makes the folder of a new run with its header; only the user may look into the folder. @throws KcoreError RUN_RECORD_UNWRITABLE */
export async function createRun({
  project,
  ...header
}: Omit<RunHeader, "version" | "id" | "nonce"> & { readonly project: string }): Promise<{
  folder: RunFolder;
  header: RunHeader;
}> {
  return reportUnwritable(join(project, ".kcore"), () => makeRun(project, header));
}

function makeRun(project: string, header: Omit<RunHeader, "version" | "id" | "nonce">) {
  const runs = makeIgnoredFolder(project, "runs");
  for (;;) {
    const id = newRunId(header.created);
    const folder = runFolder(project, id);
    const fullHeader: RunHeader = { version: 1, id, nonce: randomBytes(16).toString("hex"), ...header };
    // Made under another name, then renamed: a list of runs never finds a run without its header. Nothing is flushed: see replaceFileSync.
    const temporary = join(runs, `.${id}-${fullHeader.nonce}`);
    try {
      mkdirSync(temporary, { mode: 0o700 });
      writeHeader({ header: join(temporary, "run.json") }, fullHeader);
      renameSync(temporary, folder.path);
      return { folder, header: fullHeader };
    } catch (error) {
      rmSync(temporary, { recursive: true, force: true });
      // Another run of this millisecond drew the same id.
      if (!["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
  }
}

/**
 * Makes a folder in the project's `.kcore`, which git ignores: records are private, and a new record must not make the project's
 * revision look dirty. @throws NodeJS.ErrnoException
 */
export function makeIgnoredFolder(project: string, name: string): string {
  const folder = join(project, ".kcore", name);
  makeFolderSync(folder);
  ignoreAll(join(project, ".kcore", ".gitignore"));
  return folder;
}

function ignoreAll(file: string): void {
  if (existsSync(file)) return;
  try {
    writeFileSync(file, "*\n", { flag: "wx" });
  } catch {
    // Another run wrote the file meanwhile, or the folder is not writable, which the next write reports.
  }
}

/** Date, time and four hexadecimal digits: ten bits of milliseconds, so that ids sort as the runs began, and six of chance. */
export function newRunId(created: number): string {
  const stamp = new Date(created)
    .toISOString()
    .replaceAll(/[-:]|\..*/g, "")
    .replace("T", "-");
  const tail = ((created % 1000) << 6) | randomInt(64);
  return `${stamp}-${tail.toString(16).padStart(4, "0")}`;
}

/** @throws KcoreError RUN_UNKNOWN, RUN_RECORD_CORRUPT */
export async function readHeader(folder: Pick<RunFolder, "id" | "header">): Promise<RunHeader> {
  return readNow(folder);
}

/** Changes some fields of a header, and leaves fields that another process wrote. @throws KcoreError as {@link readHeader} */
export function changeHeader(folder: RunFolder, more: Partial<RunHeader>): void {
  writeHeader(folder, { ...readNow(folder), ...more });
}

function readNow(folder: Pick<RunFolder, "id" | "header">): RunHeader {
  let text: string;
  try {
    text = readFileSync(folder.header, "utf8");
  } catch (cause) {
    throw unknownRun(folder.id, cause);
  }
  try {
    return JSON.parse(text) as RunHeader;
  } catch (cause) {
    throw new KcoreError(
      {
        code: "RUN_RECORD_CORRUPT",
        message: `the header of run ${folder.id} is damaged`,
        hint: `look at ${folder.header}`,
      },
      { cause },
    );
  }
}

export function writeHeader(folder: Pick<RunFolder, "header">, header: RunHeader): void {
  replaceFileSync(folder.header, `${JSON.stringify(header, undefined, 2)}\n`);
}

/** The ids of all recorded runs, the oldest first. */
export async function listRunIds(project: string): Promise<string[]> {
  const names = await readdir(join(project, ".kcore", "runs")).catch(() => []);
  return names.filter(isRunId).sort();
}

/**
 * The path of a node's log in a run's folder; without a node, the path of the bastion's log, which is outside of `nodes/` because a node may
 * be called “bastion”. No node's name can lead out of the folder.
 */
export function logName(node?: string): string {
  return node === undefined ? "bastion.log" : `nodes/${encodeURIComponent(node).replace(/^\./, "%2E")}.log`;
}

function unknownRun(id: string, cause?: unknown): KcoreError {
  return new KcoreError(
    { code: "RUN_UNKNOWN", message: `no run “${id}” is recorded here`, hint: "kcore runs list" },
    { cause },
  );
}
