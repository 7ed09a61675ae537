import type { Emit } from "#engine/events/event.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { Host } from "#engine/transport/host.ts";
import type { SaveResult } from "./save-frames.ts";
import { saveTables } from "./save-tables.ts";
import type { SessionOptions } from "./session.ts";
import type { KeptTable, SaveOccasion, TableStore } from "#engine/partition-backups/saved-tables.ts";

/** The end of a grant that allows a saved table to be restored (`disk.restored`); other grants end with a fingerprint. */
const restores = "restore";
/** Attempts to save over a connection that can break. */
const tries = 3;
/** Milliseconds that a node may take to send its tables. */
const patience = 15 * 60_000;

/** The grants that a node may use, the reasons against the others (`unsaved`), and the saves by the name of their disk. */
export type SavedGrants = Pick<RunVariables, "grants"> &
  Required<Pick<RunVariables, "unsaved">> & { readonly saves: ReadonlyMap<string, KeptTable> };

interface SaveOptions {
  readonly session: SessionOptions;
  readonly run: RunVariables;
  readonly store: TableStore;
  /** Gives the node's connection, made again if it broke; undefined: the node cannot be reached. */
  readonly connect: () => Promise<Host | undefined>;
  readonly stopping: AbortSignal;
}

/** The disk that a grant names, before the last colon. */
function nameOfGrant(grant: string): string {
  const colon = grant.lastIndexOf(":");
  return colon < 0 ? grant : grant.slice(0, colon);
}

/**
 * Saves the tables of all granted disks (ADR 0012) and returns the grants that the node may use. A grant whose disk could not be saved
 * takes no effect.
 */
export async function saveGrantedTables({ session, run, store, connect, stopping }: SaveOptions): Promise<SavedGrants> {
  const { node, runId, grants, emit } = session;
  const names = [...new Set(grants.map(nameOfGrant).filter((name) => !/[\n\0]/.test(name)))];
  const isRestored = (name: string): boolean => grants.includes(`${name}:${restores}`);
  const occasion = (name: string) =>
    ({
      node: node.name,
      nodeId: node.id ?? node.name,
      run: runId,
      before: isRestored(name) ? "restore" : "wipe",
      grants: grants.filter((grant) => nameOfGrant(grant) === name),
    }) as const;
  const results = new Map<string, SaveResult>();
  for (let attempt = 1; attempt <= tries && results.size < names.length && !stopping.aborted; attempt++) {
    const host = await connect();
    if (!host) break;
    const remaining = names.filter((name) => !results.has(name));
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(patience)]);
    const { sudoPassword } = session;
    const saved = await saveTables({ host, run, names: remaining, store, occasion, sudoPassword, signal });
    for (const [name, result] of saved.results)
      if (!saved.isCut || attempt === tries || !("unsaved" in result)) results.set(name, result);
  }
  for (const [name, result] of results) report(emit, occasion(name), name, result);
  return savedGrants(grants, results);
}

function report(emit: Emit, { node, before }: SaveOccasion, name: string, result: SaveResult): void {
  if ("unsaved" in result) {
    // Every node of a run gets the grants without `@NODE`, and most nodes have no such disk.
    if (result.isAbsent === true) return;
    emit({
      type: "warning",
      node,
      text: `the table of ${name} could not be saved, so nothing of it is written: ${result.unsaved}`,
    });
    return;
  }
  const { id, isNew, bytes, device } = result;
  emit({ type: "node.saved", node, device: name, save: id, before, isNew, bytes, pieces: device.pieces.length });
}

function savedGrants(given: readonly string[], results: ReadonlyMap<string, SaveResult>): SavedGrants {
  const grants: string[] = [];
  const saves = new Map<string, KeptTable>();
  const unsaved = new Map<string, string>();
  for (const grant of given) {
    const result = results.get(nameOfGrant(grant));
    if (result && !("unsaved" in result)) {
      grants.push(grant);
      saves.set(nameOfGrant(grant), result);
    } else unsaved.set(grant, result?.unsaved ?? "the node could not be asked");
  }
  return { grants, unsaved, saves };
}

/** Drops the saves whose grants were not used. `usedGrants`: grants that the node has used, or their fingerprints. */
export async function dropUnusedSaves(
  { node, emit }: Pick<SessionOptions, "node" | "emit">,
  { grants, saves }: SavedGrants,
  usedGrants: ReadonlySet<string>,
): Promise<void> {
  const used = grants.filter(
    (grant) => usedGrants.has(grant) || usedGrants.has(grant.slice(nameOfGrant(grant).length + 1)),
  );
  const names = new Set(used.map(nameOfGrant));
  for (const [name, save] of saves) {
    if (names.has(name)) continue;
    const isGone = await save.forget().then(
      () => true,
      () => false,
    );
    if (isGone) emit({ type: "node.unsaved", node: node.name, device: name, save: save.id });
  }
}
