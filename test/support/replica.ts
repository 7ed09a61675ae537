import { ClusterState } from "#controller/replica/cluster-state.ts";
import { createReplica, type Replica } from "#controller/replica/create-replica.ts";
import { authKeyOf } from "#controller/replica/registered-controllers.ts";
import type { PeerMessage } from "#controller/replica/messages.ts";
import type { JournalRecord, KeyRules, LinkEvents, PeerLink } from "#controller/replica/replica-ports.ts";
import { WriteRefused, type ReplicaOptions } from "#controller/replica/replica.ts";
import type { Tuning } from "#controller/replica/tuning.ts";
import { mergeKindOf } from "../sim/kinds.ts";
import { Random } from "./random.ts";
import { allPromises, Scheduler } from "../sim/scheduler.ts";

const epoch = 1_700_000_000_000;

/** `recovered`: the records on the replica's disk at its start. */
type TestOptions = Partial<ReplicaOptions & KeyRules> & { readonly recovered?: Iterable<JournalRecord> };

/** A replica in virtual time with links that the test joins. Its disk fails only on request. */
export class TestReplica {
  readonly scheduler: Scheduler;
  readonly id: string;
  readonly records: JournalRecord[] = [];
  readonly dialled: string[] = [];
  offset = 0;
  isFull = false;
  #held: { readonly records: readonly JournalRecord[]; readonly durable: () => void }[] | undefined;
  readonly state: ClusterState;
  readonly replica: Replica;

  constructor(scheduler: Scheduler, id: string, options: TestOptions = {}, offset = 0) {
    this.offset = offset;
    this.scheduler = scheduler;
    this.id = id;
    this.records.push(...(options.recovered ?? []));
    const random = new Random(id.length * 7919 + (id.codePointAt(0) ?? 0) + this.records.length);
    this.state = new ClusterState({ mergeKindOf, ...options }, this.records);
    this.replica = createReplica({
      id,
      cluster: "test",
      clock: { wall: () => Math.floor(epoch + scheduler.now + this.offset), mono: () => scheduler.now },
      rng: () => random.next(),
      timers: scheduler.timers((run) => run),
      net: { dial: (target) => void this.dialled.push("id" in target ? target.id : target.address) },
      db: {
        data: this.state,
        // The promise is settled already, so that the replica applies the records before the scheduler's next event.
        append: (records) => {
          if (this.isFull) return Promise.reject(new Error("ENOSPC"));
          if (this.#held) return new Promise((durable) => this.#held?.push({ records, durable }));
          this.records.push(...records);
          return Promise.resolve();
        },
      },
      start: "found",
      ...options,
    });
  }

  /** Holds all later appends: they become durable by `release` alone. */
  hold(): void {
    this.#held ??= [];
  }

  /** Makes the first `count` held appends durable, one after the other; without a count all of them, and holds no later ones. */
  async release(count?: number): Promise<void> {
    const held = this.#held ?? [];
    for (const { records, durable } of held.splice(0, count ?? held.length)) {
      this.records.push(...records);
      durable();
    }
    if (count === undefined) this.#held = undefined;
    await allPromises();
  }

  /** Registers controllers, itself included. */
  async register(...ids: readonly string[]): Promise<void> {
    await this.replica.write(ids.map((id) => ({ key: authKeyOf(id), value: { spki: id } })));
  }

  /** Stops this replica, and starts it again with these records on its disk. */
  restart(recovered: Iterable<JournalRecord> = this.records, options: TestOptions = {}, offset = 0): TestReplica {
    this.replica.stop();
    return new TestReplica(this.scheduler, this.id, { recovered, ...options }, offset);
  }

  alarms(): readonly string[] {
    return this.replica.status().alarms.map(({ code, about }) => `${code} ${about}`);
  }
}

export interface Wire {
  /** The messages of the first replica, and of the second. */
  readonly sent: readonly [PeerMessage[], PeerMessage[]];
  readonly cut: () => void;
  /** Messages wait while it is held. */
  isHeld: boolean;
}

/** Joins two replicas by a link with this delay each way, in ms. */
export function connect(a: TestReplica, b: TestReplica, delay = 1): Wire {
  const { scheduler } = a;
  const events: [LinkEvents | undefined, LinkEvents | undefined] = [undefined, undefined];
  let isCut = false;
  const wire: Wire = {
    sent: [[], []],
    isHeld: false,
    cut: () => {
      isCut = true;
      for (const side of events) side?.closed();
    },
  };
  const linkOf = (own: 0 | 1): PeerLink => ({
    peer: own === 0 ? b.id : a.id,
    initiator: own === 0,
    send: (message) => {
      const text = JSON.stringify(message);
      wire.sent[own].push(message);
      scheduler.after(delay, () => {
        if (!isCut && !wire.isHeld) events[1 - own]?.received(JSON.parse(text));
      });
    },
    close: () => {
      // Earlier messages still arrive.
      scheduler.after(delay, () => {
        isCut = true;
        events[1 - own]?.closed();
      });
    },
  });
  events[0] = a.replica.connected(linkOf(0));
  events[1] = b.replica.connected(linkOf(1));
  return wire;
}

/** Opens a link to `to` on which the test itself sends, by default as `b`, and sends a hello and a welcome. */
export function greet(to: TestReplica, hello: object | undefined, link: Partial<PeerLink> = {}): LinkEvents {
  const nothing = (): undefined => undefined;
  const events = to.replica.connected({ peer: "b", initiator: false, send: nothing, close: nothing, ...link });
  events.received(hello);
  events.received({ t: "welcome", proto: 1, walls: [1.7e12, 1.7e12] });
  return events;
}

/** A founder `a` that has registered `b` and `c`, which join it as soon as the test connects them. */
export async function three(): Promise<Readonly<Record<"a" | "b" | "c", TestReplica>> & { scheduler: Scheduler }> {
  const scheduler = new Scheduler();
  const a = new TestReplica(scheduler, "a");
  await a.register("a", "b", "c");
  const [b, c] = ["b", "c"].map((id) => new TestReplica(scheduler, id, { start: "join" })) as [
    TestReplica,
    TestReplica,
  ];
  return { scheduler, a, b, c };
}

/** A founder `a`, and a second controller `b` that has joined it. */
export async function pair(
  tuning: Partial<Tuning> = {},
): Promise<{ scheduler: Scheduler; a: TestReplica; b: TestReplica; wire: Wire }> {
  const scheduler = new Scheduler();
  const a = new TestReplica(scheduler, "a", { tuning });
  await a.register("a", "b");
  const b = new TestReplica(scheduler, "b", { start: "join", tuning });
  const wire = connect(a, b);
  await scheduler.runUntil(500);
  return { scheduler, a, b, wire };
}

/** The code and the HTTP status of the write's refusal, or `written`. */
export async function refusalOf(write: Promise<unknown>): Promise<string> {
  try {
    await write;
    return "written";
  } catch (error) {
    return error instanceof WriteRefused ? `${error.code} ${error.status}` : String(error);
  }
}
