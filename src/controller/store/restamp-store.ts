import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { ClusterState, type KeyRules } from "../replica/cluster-state.ts";
import { restamp, type RestampedWrite } from "../replica/restamp.ts";
import { realDisk } from "./durable-disk.ts";
import { recordsOf, recover } from "./recover.ts";
import { replaceStore, type Replacement } from "./restore.ts";

export interface RestampedStore {
  readonly writes: readonly RestampedWrite[];
  /** The file that lists them; absent when there are none. */
  readonly file?: string;
}

/**
 * Stamps anew the writes of a controller whose clock was ahead (restamp.ts), and lists them in a file beside the former state. Changes
 * nothing if there is nothing to restamp.
 * @throws KcoreError as repairStore does
 */
export async function restampStore(where: Replacement & { readonly rules: KeyRules }): Promise<RestampedStore> {
  const { folder, id, now, rules } = where;
  const word = (): string => randomBytes(4).toString("hex");
  const recovered = await recover(realDisk, folder);
  const { records, writes } = restamp(new ClusterState(rules, recordsOf(recovered, folder)), { id, now, word });
  if (writes.length === 0) return { writes };
  const rows = writes.map((write) => ({ ...write, from: isoOf(write.from), to: isoOf(write.to) }));
  const beside = { "restamped.json": rows };
  const content = { index: recovered.next - 1, entries: [...records], notes: [], beside };
  const { aside } = await replaceStore(where, "before-restamping", () => Promise.resolve(content));
  return { writes, file: join(aside, "restamped.json") };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
