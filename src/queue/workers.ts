import type { Redis } from "ioredis";
import { keys } from "./keys.ts";
import type { Reach } from "./reach.ts";

/** A worker's process as it describes itself, signed by its member's key. */
export interface LivingWorker {
  readonly id: string;
  /** The member's name in kcore.yaml. */
  readonly name: string;
  readonly version: string;
  readonly reach: Reach;
}

/** Tells at each call whether Redis was started again since the last one: it may have lost the last second of messages. */
export function restartCheck(redis: Redis): () => Promise<boolean> {
  let known: string | undefined;
  return async () => {
    const now = /^run_id:(\w+)/m.exec(await redis.info("server"))?.[1];
    const isNew = known !== undefined && now !== known;
    known = now;
    return isNew;
  };
}

/** The workers whose marks have not run out. Marks that `open` refuses are left out. */
export async function livingWorkers(
  redis: Redis,
  open: (bytes: Buffer) => Promise<LivingWorker | undefined>,
): Promise<readonly LivingWorker[]> {
  const ids = await redis.smembers(keys.workers);
  if (ids.length === 0) return [];
  const marks = await redis.mgetBuffer(ids.map((id) => keys.worker(id)));
  const gone = ids.filter((_, index) => !marks[index]);
  if (gone.length > 0) await redis.srem(keys.workers, ...gone);
  const workers = await Promise.all(
    ids.map(async (id, index) => {
      const mark = marks[index];
      const worker = mark ? await open(mark) : undefined;
      // A mark copied to another name would count for a worker that is gone.
      return worker?.id === id ? worker : undefined;
    }),
  );
  return workers.flatMap((worker) => worker ?? []);
}
