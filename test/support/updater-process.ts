import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { FailureRecord } from "#rollout/records.ts";
import { UpdateFailure } from "#updater/failure.ts";
import { updateFiles } from "#updater/files.ts";
import type { Journal } from "#updater/journal.ts";
import { superviseUpdater } from "./node-updater.ts";

/** Faults of a node. */
export interface UpdaterBehaviour {
  /** The failure of the target once the bastion has confirmed it. */
  readonly hold?: FailureRecord;
}

/**
 * A node's updater that only moves a link: `updater-process.ts FOLDER PROFILE PATH`; PATH is the link's first target. FOLDER/behaviour.json may
 * have an UpdaterBehaviour.
 */
const [folder = "", profile = "", first = ""] = process.argv.slice(2);

function read<Value extends object>(name: string): Partial<Value> {
  const file = join(folder, name);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Value) : {};
}

const behaviour = (): UpdaterBehaviour => read("behaviour.json");

let moves = 0;
function move(path: string): void {
  const link = `${profile}-${process.pid}${++moves}-link`;
  symlinkSync(path, link);
  symlinkSync(basename(link), `${profile}.new`);
  renameSync(`${profile}.new`, profile);
  writeFileSync(`${profile}.path`, path);
}

mkdirSync(folder, { recursive: true, mode: 0o700 });
if (!existsSync(`${profile}.path`)) move(first);
await superviseUpdater({
  folder,
  signal: new AbortController().signal,
  self: { id: "", hostname: "", dc: "" },
  verify: ({ statement }) => Promise.resolve(JSON.parse(statement)),
  present: () => {
    const id = readFileSync(`${profile}.path`, "utf8").trim();
    return { id, version: id.replace(/^.*-/, "") };
  },
  move: ({ id }) => Promise.resolve(move(id)),
  // Slow enough that a test sees each report.
  carryOut: () => sleep(100),
  missing: () => {
    const { hold } = behaviour();
    if (hold && read<Journal>(updateFiles.journal).doing?.isConfirmed === true)
      throw new UpdateFailure(hold.kind, hold.message);
    return undefined;
  },
});
