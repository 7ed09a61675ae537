import { conflictMutants } from "./conflict-mutants.ts";
import { busy } from "./swarm.ts";
import type { Swarm } from "./swarm.ts";

/**
 * Bugs that the simulator must find, planted in the real source as it is loaded (plant.ts), so that the product has no switch for them.
 * Most were real bugs of kcore's first replication or of a prototype.
 */
export interface Mutant {
  readonly why: string;
  /** The first seed of the search; it found the bug when it was recorded. */
  readonly seed?: number;
  readonly edits: readonly {
    /** The path below src/. */
    readonly file: string;
    /** A text that occurs exactly once in the file. */
    readonly from: string;
    readonly to: string;
  }[];
  /** Changes of a seed's faults: faults that would show this bug by another bug's symptom are left out. */
  readonly swarm?: Partial<Swarm>;
}

export const mutants: Readonly<Record<string, Mutant>> = {
  vvfirst: {
    why: "the version vector is durable before the data that it promises (kcore's K2)",
    seed: 10,
    edits: [
      {
        file: "controller/replica/puller.ts",
        from: "    await commits.commit(recordsOf(sync.pages, { upto: news, hlc: end.hlc }), sync.registers);",
        to: `    inBackground(commits.commit([{ t: "apply", page: emptyPage, upto: news, hlc: end.hlc }]));
    await commits.commit(recordsOf(sync.pages, { upto: news, hlc: end.hlc }), sync.registers);`,
      },
      {
        file: "crdt/lww-map.ts",
        from: "} else if (again || !covers(this.#vector, register.o, register.s)) {",
        to: "} else {",
      },
    ],
  },
  norecv: {
    why: "received writes do not move the clock",
    seed: 2,
    edits: [
      {
        file: "controller/replica/cluster-state.ts",
        from: "for (const register of registers) this.advanceClock(register);",
        to: "for (const register of registers) if (register.o === this.origin) this.advanceClock(register);",
      },
      {
        file: "controller/replica/cluster-state.ts",
        from: "if (record.hlc !== undefined) this.advanceClock(decodeStamp(record.hlc));",
        to: "",
      },
    ],
  },
  ackearly: {
    why: "a write is acknowledged before it is durable",
    edits: [
      {
        file: "controller/replica/writer.ts",
        from: "      await this.#core.commits.commit(records, registers);",
        to: `      const committed = this.#core.commits.commit(records, registers);
      committed.then(() => this.#outbox.add(registers), () => undefined);
      return { o, s, hlc: encodeStamp({ ms, c }) };`,
      },
    ],
  },
  propearly: {
    why: "a write is sent to peers before it is durable",
    seed: 5,
    edits: [
      {
        file: "controller/replica/writer.ts",
        from: "      await this.#core.commits.commit(records, registers);",
        to: "      this.#outbox.add(registers);\n      await this.#core.commits.commit(records, registers);",
      },
    ],
  },
  driftdrop: {
    why: "a write stamped too far ahead is dropped, not deferred",
    seed: 24,
    edits: [
      {
        file: "controller/replica/push.ts",
        from: `  if (treatment === "defer") return puller.defer(origin, latest);
  if (treatment === "wait") return puller.pull();`,
        to: `  if (treatment !== "take") fresh.length = 0;`,
      },
    ],
  },
  earlypromise: {
    why: "each page promises the sender's whole version vector, not only the last",
    seed: 3,
    edits: [
      {
        file: "controller/replica/page-sender.ts",
        from: "...(next ? {} : { end: this.#end(serving.isFull) }),",
        to: "end: this.#end(serving.isFull),",
      },
    ],
  },
  unsorted: {
    why: "pages are not in the order of (origin, seq), but continue as if they were",
    seed: 3,
    edits: [
      {
        file: "crdt/delta.ts",
        from: "for (const origin of [...pass.target.keys()].toSorted()) {",
        to: "for (const origin of [...pass.target.keys()].toSorted().toReversed()) {",
      },
    ],
  },
  hlcnotpersist: {
    why: "the clock starts at the wall after a restart",
    seed: 55,
    edits: [
      {
        file: "controller/replica/cluster-state.ts",
        from: "    for (const record of records) this.apply(record);",
        to: "    for (const record of records) this.apply(record);\n    this.#clock = zero;",
      },
    ],
  },
  gcnoown: {
    why: "tombstones are collected before the writes that members made without knowledge of them have arrived",
    seed: 27,
    edits: [
      {
        file: "crdt/tombstones.ts",
        from: "if (!acks.every((ack) => ack !== undefined && dominates(own, ack))) return [];",
        to: "if (dominates(new Map(), own)) return [];",
      },
    ],
  },
  ttlgc: {
    why: "tombstones are collected after 8 s, even if a member has not seen them",
    seed: 3,
    edits: [
      {
        file: "controller/replica/tombstone-gc.ts",
        from: "  return { registers: collectable(forgettable, state.map.vector, acks), underway };",
        to: `  const old = [...state.map.tombstones().values()].filter(({ ms }) => ms < core.options.clock.wall() - 8_000);
  for (const tombstone of old) state.map.drop(tombstone);
  void [acks, collectable, forgettable, underway];
  return undefined;`,
      },
    ],
  },
  readyvacuous: {
    why: "a joining controller is ready when it agrees with all members that it knows: at first, none",
    edits: [
      {
        file: "controller/replica/create-replica.ts",
        from: `ready: core.options.start === "found" } as const`,
        to: `ready: true } as const`,
      },
    ],
  },
  gcjoining: {
    why: "tombstones are collected without a joining controller's acknowledgement, and no full exchange makes up for it",
    seed: 7,
    edits: [
      {
        file: "controller/replica/tombstone-gc.ts",
        from: "const acks = others.map((id) => peers.get(id)?.acked);",
        to: "const acks = others.filter((id) => peers.get(id)?.isReady).map((id) => peers.get(id)?.acked);",
      },
      {
        file: "controller/replica/page-sender.ts",
        from: "const isFull = !dominates(seen, state.floor.vector);",
        to: "const isFull = false;",
      },
      {
        file: "controller/replica/page-sender.ts",
        from: "if (!serving.isFull && !dominates(new Map(serving.pull.vv), floor.vector)) return this.stop();",
        to: "void floor;",
      },
    ],
    swarm: { restores: false },
  },
  nocausal: {
    why: "a push is merged before the writes that its writer had seen",
    seed: 3,
    edits: [
      {
        file: "controller/replica/push.ts",
        from: "covers(accepted, origin, from) && registers.every(({ x }) => coversContext(accepted, x));",
        to: "covers(accepted, origin, from) || registers.every(({ x }) => coversContext(accepted, x)) || true;",
      },
      {
        file: "controller/replica/cluster-state.ts",
        from: "registers.every(({ x }) => coversContext(vector, x))",
        to: "(registers.every(({ x }) => coversContext(vector, x)) || true)",
      },
    ],
  },
  nofloor: {
    why: "a controller that was set back to an earlier state does not learn which tombstones were collected since",
    seed: 10,
    edits: [
      {
        file: "controller/replica/page-sender.ts",
        from: "const isFull = !dominates(seen, state.floor.vector);",
        to: "const isFull = false;",
      },
      {
        file: "controller/replica/page-sender.ts",
        from: "if (!serving.isFull && !dominates(new Map(serving.pull.vv), floor.vector)) return this.stop();",
        to: "void floor;",
      },
      {
        file: "controller/replica/puller.ts",
        from: "if (!dominates(upto, this.#core.state.floor.vector)) return this.abandon();",
        to: "",
      },
    ],
    swarm: { restores: true, partitions: true, losses: false },
  },
  noconfirm: {
    why: "a controller writes under the origin on its disk without asking whether its next seq was used",
    seed: 9,
    edits: [
      {
        file: "controller/replica/origin-generation.ts",
        from: "return this.#isFresh || this.#core.others.every((id) => this.#confirmedBy.has(id));",
        to: "return true;",
      },
    ],
  },
  pushgap: {
    why: "a write repeated after a full exchange is in no push, but the next push claims it",
    seed: 163,
    edits: [
      {
        file: "controller/replica/writer.ts",
        from: "    await this.#commit(rewritten);",
        to: `    const upto = [[draft.o, draft.s]] as const;
    await this.#core.commits.commit([{ t: "apply", page: encodePage(rewritten), upto }], rewritten);`,
      },
    ],
    swarm: { nodes: 3, restores: true, partitions: true },
  },
  nosoon: {
    why: "deletions are forgotten while a write that missed them is being journaled",
    seed: 17,
    edits: [
      {
        file: "controller/replica/tombstone-gc.ts",
        from: "  for (const id of others) raise(underway, peers.get(id)?.underway ?? []);",
        to: "  underway.clear();\n  void raise;",
      },
    ],
    swarm: { ...busy, restores: false },
  },
  blindcheck: {
    why: "a write is compared with the own write that is being journaled, not with a winning one that arrived meanwhile",
    seed: 6,
    edits: [
      {
        file: "controller/replica/writer.ts",
        from: "return compareRegisters(this.#core.state.rules.mergeKindOf(key), pending, present) > 0 ? pending : present;",
        to: "return pending;",
      },
    ],
    swarm: { ...busy, restores: false },
  },
  ...conflictMutants,
};
