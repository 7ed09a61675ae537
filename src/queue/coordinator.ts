import type { Queue } from "bullmq";
import type { Redis } from "ioredis";
import { randomBytes } from "node:crypto";
import type { OpenSession, SessionOptions } from "#engine/session/session.ts";
import { firstAttempt } from "#engine/orchestrate/live-run.ts";
import type { Question } from "#engine/events/event.ts";
import { BadMessage, Channel } from "./channel.ts";
import { ALIVE_SECONDS, keys, KEPT_SECONDS, PREFIX, RENEW_MS } from "./keys.ts";
import type { Command, Report } from "./messages.ts";
import { QueuedSession } from "./queued-session.ts";
import { closestReach, reachName } from "./reach.ts";
import { readStream } from "./streams.ts";
import { type LivingWorker, livingWorkers, restartCheck } from "./workers.ts";

export interface CoordinatorOptions {
  readonly redis: Redis;
  /** A further connection, for reads that block. */
  readonly connect: () => Redis;
  readonly run: { readonly id: string; readonly part: number; readonly key: Buffer };
  readonly version: string;
  /** Opens a worker's description; undefined: it is no member's, or not a worker's. */
  readonly openWorker: (bytes: Buffer) => Promise<LivingWorker | undefined>;
  readonly ask: (question: Omit<Question, "id">) => Promise<string>;
  readonly warn: (text: string) => void;
}

interface Job {
  readonly session: QueuedSession;
  /** The queue in which the job is; absent: no living worker reaches the node. */
  queue?: string;
  worker?: { readonly id: string; readonly session: string; readonly reports: Channel; readonly commands: Channel };
  /** When the job came into its queue, or began to wait for a worker; milliseconds of this process. */
  since: number;
}

/** Milliseconds after which a job without a worker is told. */
const PATIENCE_MS = 5_000;

/** Hands the sessions of one run's nodes to workers, one job for each visit of a node to a block of stages. */
export class Coordinator {
  readonly #options: CoordinatorOptions;
  readonly #jobs = new Map<string, Job>();
  readonly #queues = new Map<string, Queue>();
  readonly #told = new Set<string>();
  readonly #closing = new AbortController();
  readonly #reader: Redis;
  readonly #wasRestarted: () => Promise<boolean>;
  #workers: readonly LivingWorker[] = [];
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #reading: Promise<void> | undefined;

  constructor(options: CoordinatorOptions) {
    this.#options = options;
    this.#reader = options.connect();
    this.#wasRestarted = restartCheck(options.redis);
  }

  /** Begins to look for workers and to read their messages. */
  async start(): Promise<void> {
    await this.#renew();
    this.#timer = setInterval(() => void this.#look(), RENEW_MS / 2);
    const { id, part } = this.#options.run;
    this.#reading = readStream(
      this.#reader,
      keys.reports(id, part),
      (fields) => this.#take(fields),
      this.#closing.signal,
    );
  }

  readonly openSession: OpenSession = (session: SessionOptions) => {
    const { ask, run } = this.#options;
    return new QueuedSession({
      session,
      ask,
      firstAttempt: firstAttempt(run.part),
      enqueue: (queued) => this.#enqueue(queued),
    });
  };

  /** Ends the run's part in the queue. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort();
    const { redis, run } = this.#options;
    await redis.del(keys.run(run.id), keys.package(run.id, run.part), keys.reports(run.id, run.part));
    this.#reader.disconnect();
    await this.#reading;
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }

  #enqueue(session: QueuedSession): { end(): void } {
    const { id, part } = this.#options.run;
    const name = `${id}.${part}.${++this.#count}`;
    const job: Job = { session, since: performance.now() };
    this.#jobs.set(name, job);
    void this.#place(name, job);
    return {
      end: () => {
        this.#jobs.delete(name);
        if (job.queue !== undefined && !job.worker) void this.#remove(job.queue, name);
      },
    };
  }

  /** Puts a job into the queue of the closest reach that a living worker has. */
  async #place(name: string, job: Job): Promise<void> {
    const { node } = job.session;
    const reach = closestReach(
      this.#fit().map((worker) => worker.reach),
      node,
    );
    if (!reach) return;
    job.queue = reachName(reach);
    const ticket = new Channel(this.#options.run.key, `${name} ticket`).seal({ node: node.name });
    const queue = await this.#queue(job.queue);
    await queue.add(name, ticket.toString("base64"), { jobId: name, removeOnComplete: true, removeOnFail: true });
  }

  async #queue(name: string): Promise<Queue> {
    const { Queue } = await import("bullmq");
    const known = this.#queues.get(name) ?? new Queue(name, { connection: this.#options.redis, prefix: PREFIX });
    this.#queues.set(name, known);
    return known;
  }

  async #remove(queue: string, name: string): Promise<void> {
    // A job that a worker has taken meanwhile is dropped when the worker says hello.
    await (await this.#queue(queue)).remove(name).catch(() => undefined);
  }

  #fit(): readonly LivingWorker[] {
    return this.#workers.filter(({ version }) => version === this.#options.version);
  }

  async #renew(): Promise<void> {
    const { redis, run } = this.#options;
    await redis.set(keys.run(run.id), String(run.part), "EX", ALIVE_SECONDS);
    if (await this.#wasRestarted()) for (const [name, job] of this.#jobs) if (job.worker) this.#lose(name, job);
    this.#workers = await livingWorkers(redis, this.#options.openWorker);
  }

  /** Renews the run's mark, and looks at jobs that no worker has. */
  async #look(): Promise<void> {
    try {
      await this.#renew();
      for (const [name, job] of this.#jobs) await this.#lookAt(name, job);
    } catch {
      // Redis is away; its client connects again, and the next look follows.
    }
  }

  async #lookAt(name: string, job: Job): Promise<void> {
    const { worker, session, queue, since } = job;
    if (worker && this.#workers.some(({ id }) => id === worker.id)) return;
    if (worker) this.#lose(name, job);
    if (!this.#jobs.has(name)) return;
    const isServed = queue !== undefined && this.#fit().some(({ reach }) => reachName(reach) === queue);
    if (isServed) {
      // Redis may have lost the job: adding it again is harmless while it is there.
      if (performance.now() - since > PATIENCE_MS) await this.#place(name, job);
      return;
    }
    if (queue !== undefined) await this.#remove(queue, name);
    delete job.queue;
    await this.#place(name, job);
    if (job.queue === undefined && performance.now() - since > PATIENCE_MS) this.#tellUnreached(session);
  }

  #tellUnreached({ node }: QueuedSession): void {
    const where = [`datacenter ${node.dc}`, ...node.jump.map((jump) => `behind ${jump}`)].join(", ");
    const reaching = this.#workers.filter(({ reach }) => closestReach([reach], node));
    const others = this.#workers.map(({ name, reach }) => `${name} takes ${reachName(reach)}`).join(", ");
    const why =
      reaching.length > 0
        ? `${reaching.map(({ name, version }) => `${name} has kcore ${version}`).join(", ")}, this run ${this.#options.version}`
        : `living workers: ${others || "none"}`;
    this.#tell(where, `no worker takes ${node.name} (${where}); ${why}; it waits for one: kcore worker`);
  }

  /** Warns once about a subject. */
  #tell(about: string, text: string): void {
    if (this.#told.has(about)) return;
    this.#told.add(about);
    this.#options.warn(text);
  }

  async #take({ job: name, worker: id, session: nonce, hello, text }: Readonly<Record<string, Buffer>>): Promise<void> {
    const job = this.#jobs.get(String(name));
    if (hello) return this.#welcome(job, String(name), String(id), String(nonce), hello);
    if (!job?.worker || job.worker.session !== String(nonce) || !text) return;
    try {
      job.session.handle(job.worker.reports.open(text) as Report);
    } catch (error) {
      if (!(error instanceof BadMessage)) throw error;
      this.#options.warn(`a message of a worker about ${job.session.node.name} is damaged: its work begins anew`);
      this.#lose(String(name), job);
    }
  }

  /** Gives up on a job's worker: a worker that only stood still drops the job when it goes on. */
  #lose(name: string, job: Job): void {
    if (job.worker) this.#send(job.worker, name, { do: "drop" });
    delete job.worker;
    job.session.lose();
  }

  #welcome(job: Job | undefined, name: string, id: string, session: string, hello: Buffer): void {
    const { key } = this.#options.run;
    const line = `${name} ${session}`;
    try {
      new Channel(key, `${line} hello`).open(hello);
    } catch {
      return this.#tell(id, "a message in the queue is not from a worker of this run, and is left out");
    }
    const worker = {
      id,
      session,
      reports: new Channel(key, `${line} reports`),
      commands: new Channel(key, `${line} commands`),
    };
    if (job?.worker) this.#lose(name, job);
    if (!job || !this.#jobs.has(name)) return this.#send(worker, name, { do: "drop" });
    job.worker = worker;
    job.since = performance.now();
    job.session.take({ end: () => undefined, send: (command) => this.#send(worker, name, command) });
  }

  #send({ id, session, commands }: NonNullable<Job["worker"]>, job: string, command: Command): void {
    const { redis } = this.#options;
    void redis
      .pipeline()
      .xadd(keys.commands(id), "*", "job", job, "session", session, "text", commands.seal(command))
      .expire(keys.commands(id), KEPT_SECONDS)
      .exec()
      .catch(() => undefined);
  }
}

/** A name for a worker's process, or for its session of a job. */
export function newName(): string {
  return randomBytes(8).toString("hex");
}
