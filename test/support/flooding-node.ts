import { runInNewContext } from "node:vm";
import { setFlagsFromString } from "node:v8";
import { cleanStrings } from "#engine/events/clean.ts";
import type { RunEventBody } from "#engine/events/event.ts";
import { formatEvent } from "#engine/events/recording.ts";
import type { WorkResult } from "#engine/session/session.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { Channel, Host } from "#engine/transport/host.ts";
import { openSession } from "#engine/session/open-session.ts";
import { fakeChannel } from "./fake-session.ts";
import { hangLimit } from "./limit.ts";
import { isLongForm } from "./hostile.ts";
import { nodeEntry } from "./runs.ts";
import { noTables } from "./tables.ts";

setFlagsFromString("--expose_gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** MiB that a session may hold. */
export const mayHold = 32;
/** Bytes in use above which the test collects garbage and measures: below, the session cannot hold too much. The long form always measures. */
const measuredFrom = isLongForm ? 0 : mayHold * 2 ** 20;

/** The load that a node's output put on the bastion. */
export interface FloodLoad {
  readonly result: WorkResult;
  /** The size of the run's record in bytes, and its events by type. */
  readonly recorded: number;
  readonly events: ReadonlyMap<string, number>;
  /** MiB that the session held at its end, or while the node wrote if that exceeded {@link mayHold}. */
  readonly held: number;
  /** The longest turn of the event loop, in milliseconds of CPU. */
  readonly blocked: number;
  /** Bytes sent to the node after its first line. */
  readonly sent: number;
}

const nonce = "0123456789abcdef".repeat(2);
export const line = (text: string): Buffer => Buffer.from(`${nonce} ${text}\n`);

/**
 * Performs the drafts on a node that answers with these bytes, then ends the connection. Time is measured as CPU time of this thread, so
 * that a busy machine makes no case slow.
 */
export async function flood(drafts: readonly UnresolvedStep[], says: () => Iterable<Uint8Array>): Promise<FloodLoad> {
  // Made beforehand, so that the cost of making the chunks does not count.
  const chunks = [...says()];
  const events = new Map<string, number>();
  let [recorded, held, sent] = [0, 0, 0];
  const channel = hostileChannel(chunks, (bytes) => (sent += bytes));
  const host: Host = {
    name: "n1",
    fingerprint: "",
    exec: () => Promise.resolve(channel),
    forward: () => Promise.reject(new Error("no")),
    closed: new Promise(() => undefined),
    close: () => Promise.resolve(),
  };
  const emit = (event: RunEventBody): void => {
    recorded += formatEvent({ seq: 1, at: 0, ...cleanStrings(event) }).length;
    events.set(event.type, (events.get(event.type) ?? 0) + 1);
  };
  const session = openSession({
    node: nodeEntry("n1", { transport: "ssh", user: "root" }),
    endpoint: { name: "n1", transport: "ssh", address: "n1", port: 22, user: "root", hostKeys: [], jump: [] },
    connect: () => Promise.resolve(host),
    runId: "r1",
    attempt: 1,
    nonce,
    who: "tester@bastion",
    dryRun: false,
    grants: [],
    tables: noTables,
    emit,
    sudoPassword: () => Promise.resolve(undefined),
    recorded: new Map(),
    resumed: false,
    waitForLock: false,
    connectTimeout: hangLimit,
    retryDelays: [],
    connectSlot: () => Promise.resolve(() => undefined),
  });
  const before = used();
  const loop = watchLoop();
  const look = setInterval(() => {
    if (loop.apart(inUse) - before >= measuredFrom) held = Math.max(held, loop.apart(used) - before);
  }, 20);
  try {
    const result = await session.perform([{ stage: "s", drafts }], { isLast: true });
    held = Math.max(held, loop.apart(used) - before);
    await session.finish(result.outcome);
    return { result, recorded, events, held: held / 2 ** 20, blocked: loop.longest(), sent };
  } finally {
    clearInterval(look);
    loop.stop();
  }
}

function hostileChannel(chunks: readonly Uint8Array[], onSent: (bytes: number) => void): Channel {
  let isClosed = false;
  const stdout = (async function* (): AsyncGenerator<Uint8Array> {
    for (const bytes of chunks) {
      if (isClosed) return;
      yield bytes;
    }
  })();
  return fakeChannel(stdout, { write: async (bytes) => onSent(bytes.length), close: () => (isClosed = true) });
}

/** Bytes in use, without garbage. */
function used(): number {
  // Memory outside of the heap counts until a collection's sweeper, a concurrent thread, has freed it. The second collection waits for that
  // sweeper.
  collectGarbage();
  collectGarbage();
  return inUse();
}

function inUse(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Measures each turn of the event loop in CPU time of this thread. */
function watchLoop() {
  const now = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let [last, longest, isOver] = [now(), 0, false];
  const turn = (): void => {
    if (isOver) return;
    const at = now();
    longest = Math.max(longest, at - last);
    last = now();
    setImmediate(turn);
  };
  setImmediate(turn);
  return {
    /** Runs the test's own work, which does not count. */
    apart<Result>(work: () => Result): Result {
      const began = now();
      longest = Math.max(longest, began - last);
      const result = work();
      last = now();
      return result;
    },
    longest: () => longest,
    stop: () => void (isOver = true),
  };
}
