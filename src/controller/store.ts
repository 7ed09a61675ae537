import { join } from "node:path";
import { Low } from "lowdb";
import { z } from "zod";
import { Approval } from "#api/schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { ensurePrivateFolder } from "#pki/files.ts";
import { durableFile } from "./adapter.ts";
import { lockFolder } from "./store/lock.ts";

/** A node as it is kept. Times are milliseconds since the epoch. */
const NodeRecord = z.object({
  id: z.string(),
  hostname: z.string(),
  address: z.string(),
  dc: z.string(),
  roles: z.array(z.string()),
  labels: z.record(z.string(), z.string()),
  cpu: z.number(),
  memory: z.number(),
  version: z.string(),
  approval: Approval,
  /** Whether its agent runs, as far as was known when this was written. */
  alive: z.boolean(),
  /** Why it is not alive. */
  reason: z.string().optional(),
  registeredAt: z.number(),
  /** Only as fresh as the last write: heartbeats alone are not written. */
  lastSeenAt: z.number(),
  certificateExpiresAt: z.number(),
  /** SHA-256 of the public key it registered with. */
  key: z.string(),
});
export type NodeRecord = z.infer<typeof NodeRecord>;

const Snapshot = z.object({ cluster: z.string(), controllerId: z.string(), nodes: z.array(NodeRecord) });
type Snapshot = z.infer<typeof Snapshot>;

/** Nodes by id. What can be read here is on the disk: a change shows only when it is durable. */
export interface Store {
  readonly get: (id: string) => NodeRecord | undefined;
  /** In the order in which they registered first. */
  readonly list: () => readonly NodeRecord[];
  /**
   * Replaces a node by what `make` gives for its present record; resolves with that when it is on the disk. Changes are
   * made one after the other, so none works on an old record. What `make` throws changes nothing and is passed on.
   * @throws KcoreError STORE_UNWRITABLE; then nothing has changed
   */
  readonly update: (id: string, make: (before: NodeRecord | undefined) => NodeRecord) => Promise<NodeRecord>;
  /** Waits for writes under way and gives the folder free. */
  readonly close: () => Promise<void>;
}

/**
 * Opens a controller's state in `folder` (made 0700, its file 0600) and holds it alone.
 * @throws KcoreError STORE_LOCKED, STORE_CORRUPT, FILE_UNTRUSTED, CONFIG_INVALID when it is another cluster's or controller's
 */
export async function openStore({
  folder,
  cluster,
  controllerId,
}: {
  readonly folder: string;
  readonly cluster: string;
  readonly controllerId: string;
}): Promise<Store> {
  await ensurePrivateFolder(folder);
  const unlock = await lockFolder(folder);
  try {
    const file = join(folder, "state.json");
    const empty: Snapshot = { cluster, controllerId, nodes: [] };
    const db = new Low<Snapshot>(
      durableFile(file, (value) => Snapshot.parse(value)),
      empty,
    );
    await db.read();
    if (db.data.cluster !== cluster || db.data.controllerId !== controllerId) {
      throw new KcoreError({
        code: "CONFIG_INVALID",
        message: `${file} belongs to controller ${db.data.controllerId} of the cluster “${db.data.cluster}”, not to ${controllerId} of “${cluster}”`,
        hint: "move it away to start empty",
      });
    }
    let nodes: ReadonlyMap<string, NodeRecord> = new Map(db.data.nodes.map((node) => [node.id, node]));
    const write = groupWrites(async (changes: readonly Change[]) => {
      const next = new Map(nodes);
      const made = changes.map(({ id, make }) =>
        attempt(
          () => make(next.get(id)),
          (node) => next.set(id, node),
        ),
      );
      if (made.some(({ problem }) => problem === undefined)) {
        db.data = { cluster, controllerId, nodes: [...next.values()] };
        await db.write();
        nodes = next;
      }
      return made;
    });
    return {
      get: (id) => nodes.get(id),
      list: () => [...nodes.values()],
      async update(id, make) {
        const { node, problem } = await write.add({ id, make });
        if (node === undefined) throw problem;
        return node;
      },
      async close() {
        await write.idle();
        await unlock();
      },
    };
  } catch (error) {
    await unlock();
    throw error;
  }
}

interface Change {
  readonly id: string;
  readonly make: (before: NodeRecord | undefined) => NodeRecord;
}

interface Made {
  readonly node?: NodeRecord;
  readonly problem?: unknown;
}

function attempt(make: () => NodeRecord, keep: (node: NodeRecord) => void): Made {
  try {
    const node = make();
    keep(node);
    return { node };
  } catch (problem) {
    return { problem };
  }
}

/** Runs one write at a time; all changes that come while one is under way go into the next together. */
function groupWrites<Item, Result>(
  write: (items: readonly Item[]) => Promise<readonly Result[]>,
): { readonly add: (item: Item) => Promise<Result>; readonly idle: () => Promise<void> } {
  let current: Promise<unknown> = Promise.resolve();
  let waiting: { readonly items: Item[]; readonly done: Promise<readonly Result[]> } | undefined;
  const begin = (): { readonly items: Item[]; readonly done: Promise<readonly Result[]> } => {
    const items: Item[] = [];
    const done = settled(current).then(() => {
      waiting = undefined;
      const written = write(items);
      current = written;
      return written;
    });
    return { items, done };
  };
  return {
    async add(item) {
      waiting ??= begin();
      const index = waiting.items.push(item) - 1;
      return (await waiting.done)[index] as Result;
    },
    idle: () => settled(waiting?.done ?? current),
  };
}

function settled(promise: Promise<unknown>): Promise<void> {
  return promise.then(
    () => undefined,
    () => undefined,
  );
}
