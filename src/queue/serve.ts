import type { Redis } from "ioredis";
import { BadMessage, Channel } from "./channel.ts";
import { newName } from "./coordinator.ts";
import { ALIVE_SECONDS, keys, PREFIX, RENEW_MS } from "./keys.ts";
import type { Ticket } from "./messages.ts";
import { type Reach, reachName } from "./reach.ts";
import { serveNode, type ServedRun } from "./serve-node.ts";
import { readStream } from "./streams.ts";
import { WorkerLine } from "./worker-line.ts";
import { restartCheck } from "./workers.ts";

/** A part of a run, open at a worker until its coordinator is gone. */
export interface OpenRun {
  readonly key: Buffer;
  /** Reads the project and makes the plan, once. */
  readonly served: () => Promise<ServedRun>;
  readonly close: () => Promise<void>;
}

export interface ServeOptions {
  readonly redis: Redis;
  /** A further connection, for reads that block. */
  readonly connect: () => Redis;
  readonly reach: Reach;
  readonly concurrency: number;
  /** This process's signed description, under the id. */
  readonly describe: (id: string) => Promise<Buffer>;
  /** Opens a part of a run; undefined: it is over, or not for this machine. */
  readonly openRun: (run: string, part: number) => Promise<OpenRun | undefined>;
  readonly say: (text: string) => void;
  /** Aborted when no further node is to be taken; the nodes at work are brought to their ends. */
  readonly signal: AbortSignal;
}

/** BullMQ's lock of a job: a worker that does not renew it is lost, and the job goes to the next one within two checks. */
const lock = { lockDuration: 10_000, stalledInterval: 3_000, maxStalledCount: 1_000_000 } as const;

/** Takes nodes from the queue of a reach until the signal. Resolves when the nodes at work have ended. */
export async function serve(options: ServeOptions): Promise<void> {
  const { redis, connect, reach, concurrency, describe, say, signal } = options;
  const { Worker } = await import("bullmq");
  const id = newName();
  const mark = await describe(id);
  const lines = new Map<string, WorkerLine>();
  const runs = new Map<string, Promise<OpenRun | undefined>>();
  const wasRestarted = restartCheck(redis);
  const renew = async (): Promise<void> => {
    await redis.set(keys.worker(id), mark, "EX", ALIVE_SECONDS);
    await redis.sadd(keys.workers, id);
    if (await wasRestarted()) for (const line of lines.values()) line.drop();
    for (const [name, opening] of runs) {
      const { run, part } = partsOf(name);
      if ((await redis.get(keys.run(run))) === String(part)) continue;
      const own = [...lines.values()].filter((line) => line.name.startsWith(`${name}.`));
      for (const line of own) line.drop();
      if (own.length > 0) continue;
      runs.delete(name);
      await (await opening)?.close();
    }
  };
  await renew();
  say(`takes nodes: ${reachName(reach)}`);
  const timer = setInterval(() => void renew().catch(() => undefined), RENEW_MS);
  const over = new AbortController();
  const reader = connect();
  const take = ({ session, text }: Readonly<Record<string, Buffer>>): void => {
    const line = lines.get(String(session));
    try {
      if (text) line?.take(text);
    } catch (error) {
      if (!(error instanceof BadMessage)) throw error;
      say(`a message about job ${line?.name ?? ""} is damaged: it is given back`);
      line?.drop();
    }
  };
  const reading = readStream(reader, keys.commands(id), take, over.signal);
  const opened = async (run: string, part: number): Promise<OpenRun | undefined> => {
    const name = `${run}.${part}`;
    const opening = runs.get(name) ?? options.openRun(run, part);
    runs.set(name, opening);
    const found = await opening.catch((error: unknown) => say(`run ${run}: ${(error as Error).message}`));
    if (!found) runs.delete(name);
    return found ?? undefined;
  };
  const work = async (name: string, data: string): Promise<void> => {
    const { run, part } = partsOf(name);
    const known = await opened(run, part);
    if (!known) return;
    const { node } = new Channel(known.key, `${name} ticket`).open(Buffer.from(data, "base64")) as Ticket;
    const session = newName();
    const send = (fields: readonly (string | Buffer)[]): void =>
      void redis.xadd(keys.reports(run, part), "*", "worker", id, ...fields).catch(() => undefined);
    const line = new WorkerLine(known.key, { name, session }, send);
    lines.set(session, line);
    say(`${run}: ${node}`);
    try {
      await serveNode(node, known.served, line);
    } finally {
      lines.delete(session);
    }
  };
  const worker = new Worker<string>(reachName(reach), ({ name, data }) => work(name, data), {
    connection: connect(),
    prefix: PREFIX,
    concurrency,
    ...lock,
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
  });
  worker.on("error", () => undefined);
  worker.on("failed", (job, error) => say(`job ${job?.name ?? ""} failed: ${error.message}`));
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });
  await worker.close();
  clearInterval(timer);
  over.abort();
  reader.disconnect();
  await reading;
  await redis.del(keys.worker(id), keys.commands(id));
}

/** Run and part of a job's name, `RUN.PART.COUNT`. */
function partsOf(name: string): { readonly run: string; readonly part: number } {
  const [run = "", part] = name.split(".");
  return { run, part: Number(part) };
}
