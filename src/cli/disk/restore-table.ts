import { formatBinary, shortAge } from "#base/units.ts";
import { KcoreError } from "#errors/problem.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import {
  checkTable,
  lastSavedAt,
  listTables,
  tablesFolder,
  type SavedTable,
} from "#engine/partition-backups/saved-tables.ts";
import { DiskId, diskName } from "#engine/step/disk-names.ts";
import { findProject } from "../project/find-project.ts";
import { nodeNamed, ownRoster } from "../roster/own-roster.ts";
import { viewFromFlags, type ViewFlags } from "../terminal/choose-view.ts";
import { printRows } from "../terminal/format-result.ts";
import { requestOf, type RunFlags } from "../watch/run-request.ts";
import { startRun } from "../watch/start-run.ts";

export interface RestoreFlags extends RunFlags, ViewFlags {
  readonly list?: boolean;
  readonly save?: string;
}

/**
 * `kcore disk restore-table NODE [DISK]`: prints the saves, or puts one back by a run over the node. Returns the exit code.
 * @throws KcoreError PROJECT_NOT_FOUND, DISK_SAVE_UNKNOWN, DISK_SAVE_CORRUPT, ROSTER_NODE_UNKNOWN
 */
export async function restoreTable(node: string, name: string | undefined, flags: RestoreFlags): Promise<number> {
  const project = findProject(flags.project);
  const entry = nodeNamed(ownRoster(project), node);
  const all = await listTables(tablesFolder(project));
  const isOf = ({ nodeId }: SavedTable): boolean => nodeId === (entry.id ?? entry.name);
  const isCalled = (save: SavedTable): boolean => name === undefined || diskNames(save).includes(name);
  if (name === undefined || flags.list === true) {
    printSaves(
      all.filter((save) => isOf(save) && isCalled(save)),
      { node, output: flags.output === "json" ? "json" : "table" },
    );
    return 0;
  }
  // A disk that moved to another node is still that disk: its save is found by its id.
  const save = pickSave(all.filter(isCalled), { node, name, id: flags.save, isOf });
  await checkTable(save);
  const device = deviceParams(save, entry);
  const params = { ...device.params, size: save.size, source: save.file, pieces: save.pieces };
  const grant = [...(flags.grant ?? []), `${device.name}:restore`];
  const request = requestOf(
    { ...flags, on: [node], grant },
    { kind: "state", names: ["kcore/restore-table"] },
    { params },
  );
  return (await startRun(flags, request, viewFromFlags(flags))).exitCode;
}

function printSaves(
  saves: readonly SavedTable[],
  { node, output }: { readonly node: string; readonly output: "json" | "table" },
): void {
  const listed = saves.map(({ id, name, ids, size, pieces, texts, occasions, file }) => ({
    save: id,
    disk: name,
    ids,
    size,
    bytes: pieces.reduce((sum, { length }) => sum + length, 0),
    occasions: occasions.map(({ at, ...rest }) => ({ at: new Date(at).toISOString(), ...rest })),
    contents: texts,
    file,
  }));
  const rows = saves.map((save) => {
    const last = save.occasions.at(-1);
    const age = shortAge(Date.now() - lastSavedAt(save));
    return [
      save.name,
      save.id.slice(0, 12),
      age,
      `before a ${last?.before ?? ""}`,
      last?.run ?? "",
      describeSave(save),
    ];
  });
  const none = `Nothing is saved of ${node}: no disk of it was granted to a run of this project.`;
  printRows(listed, output, ["DISK", "SAVE", "AGE", "MADE", "RUN", "CONTENTS"], rows, none);
}

/** The signatures that blkid found, and the size of the disk. */
function describeSave({ texts, size }: SavedTable): string {
  const found = [...(texts["blkid"] ?? "").matchAll(/ (?:PTTYPE|TYPE)="([^"]*)"/g)].map(([, type = ""]) => type);
  return `${[...new Set(found)].join(", ") || "no signature"}; ${formatBinary(size)}`;
}

/** The names that may mean the saved disk: its name in the state, and the values of its ids. */
function diskNames({ name, ids }: SavedTable): readonly string[] {
  return [name, ...ids.map((id) => id.slice(id.indexOf(" ") + 1))];
}

interface SaveChoice {
  readonly node: string;
  readonly name: string;
  readonly id: string | undefined;
  readonly isOf: (save: SavedTable) => boolean;
}

/**
 * The save of that id, else the node's save before its newest wipe. A wipe resumed under the same grant saves again, and
 * the first of these saves counts. @throws KcoreError DISK_SAVE_UNKNOWN
 */
function pickSave(saves: readonly SavedTable[], { node, name, id, isOf }: SaveChoice): SavedTable {
  const all = `kcore disk restore-table ${node} lists what is saved`;
  const fail = (message: string): KcoreError => new KcoreError({ code: "DISK_SAVE_UNKNOWN", message, hint: all });
  if (id !== undefined) {
    const [found, other] = saves.filter((save) => save.id.startsWith(id));
    if (found && !other) return found;
    throw fail(`${found ? "several saves" : "no save"} of ${name} ${found ? "begin" : "begins"} with “${id}”`);
  }
  const occasions = saves
    .filter(isOf)
    .flatMap((save) => save.occasions.map((occasion) => ({ save, ...occasion })))
    .filter(({ before }) => before === "wipe")
    .sort((a, b) => a.at - b.at);
  const newest = occasions.at(-1);
  const first = occasions.find(({ grants }) => grants.some((grant) => newest?.grants.includes(grant))) ?? newest;
  if (first) return first.save;
  throw fail(`nothing was saved of a disk ${name} of ${node} before a wipe`);
}

/** The disk's name for grants, and the parameters that name it to the state. The roster's name wins: kcore makes a table's GUID of it. */
function deviceParams(
  save: SavedTable,
  { disks }: NodeEntry,
): { readonly name: string; readonly params: Record<string, unknown> } {
  const { name, ids } = save;
  if (ids.length === 0 || (name.includes("/") && !ids.some((id) => id.endsWith(` ${name}`)))) {
    const [vg = "", lv = ""] = name.split("/");
    return { name, params: vg === "md" ? { kind: "array", array: lv } : { kind: "volume", vg, lv } };
  }
  const own = disks
    .map((disk) => DiskId.safeParse(disk).data)
    // Another disk may be at the bus path by now.
    .filter((disk) => disk && (disk.busPath === undefined || disk.busPath === name))
    .find((disk) => disk && ids.includes(`${diskName(disk).kind} ${diskName(disk).value}`));
  const kind = ["serial", "wwn", "byId", "busPath"].find((one) => ids.includes(`${one} ${name}`)) ?? "serial";
  const disk = own ?? DiskId.parse({ [kind]: name });
  return { name: diskName(disk).value, params: { kind: "disk", disk } };
}
