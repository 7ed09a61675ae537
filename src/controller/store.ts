import { join } from "node:path";
import { Low } from "lowdb";
import { z } from "zod";
import { Approval } from "#api/schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { ensurePrivateFolder } from "#pki/files.ts";
import { durableFile } from "./adapter.ts";
import { lockFolder } from "./lock.ts";

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

export interface Store {
  /** By node id. Change it, then `save` before anything is acknowledged. */
  readonly nodes: Map<string, NodeRecord>;
  /** Resolves when everything changed before the call is on the disk. @throws KcoreError STORE_UNWRITABLE */
  readonly save: () => Promise<void>;
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
    const nodes = new Map(db.data.nodes.map((node) => [node.id, node]));
    const save = groupWrites(async () => {
      db.data = { cluster, controllerId, nodes: [...nodes.values()] };
      await db.write();
    });
    return {
      nodes,
      save,
      async close() {
        await save.idle();
        await unlock();
      },
    };
  } catch (error) {
    await unlock();
    throw error;
  }
}

/** Runs one write at a time; all who ask while one is under way share the next. */
function groupWrites(write: () => Promise<void>): (() => Promise<void>) & { readonly idle: () => Promise<void> } {
  let current: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  const save = (): Promise<void> => {
    next ??= settled(current).then(() => {
      next = undefined;
      current = write();
      return current;
    });
    return next;
  };
  const idle = (): Promise<void> => settled(next ?? current);
  return Object.assign(save, { idle });
}

function settled(promise: Promise<void>): Promise<void> {
  return promise.then(
    () => undefined,
    () => undefined,
  );
}
