import { expect } from "chai";
import { hasSeen } from "#crdt/conflict.ts";
import { cutPage, startDelta } from "#crdt/delta.ts";
import { nextStamp } from "#crdt/hlc.ts";
import { encodePage } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { contextOf, toWire } from "#crdt/version-vector.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import { ClusterState } from "#controller/replica/cluster-state.ts";
import { isAtLeast, mergeKindOf } from "./kinds.ts";

type Apply = Extract<JournalRecord, { t: "apply" }>;
/** The end of a step: well, or its site dies and the journal's last record is lost, or kept without an acknowledgement. */
type Ending = "well" | "lost" | "kept";
type Step = "w1" | "w2" | "w3" | "send a" | "send b" | "take a" | "take b" | "crash a" | "crash b";

/** One replica without timers or links: the product's state, and a journal. */
class Site {
  state = new ClusterState({ mergeKindOf });
  readonly journal: JournalRecord[] = [];
  readonly origin: string;
  readonly #wall: number;

  constructor(id: string, wall: number) {
    this.origin = `${id}#1`;
    this.#wall = wall;
  }

  write(key: string, text: string | null): { readonly record: Apply; readonly register: Register } {
    const { map, clock } = this.state;
    const s = (map.vector.get(this.origin) ?? 0) + 1;
    const stamp = nextStamp(clock, this.#wall);
    const register = { key, text, ...stamp, o: this.origin, s, x: contextOf(map.vector, this.origin) };
    return { register, record: { t: "apply", page: encodePage([register]), upto: [[this.origin, s]] } };
  }

  /** All registers that the other site may lack, as one pull brings them. */
  answer(seen: ReadonlyMap<string, number>): Apply {
    const { registers } = cutPage(this.state.map, startDelta(this.state.map, seen));
    return { t: "apply", page: encodePage(registers), upto: toWire(this.state.map.vector) };
  }

  /** True if the record took effect and its writer may be told. */
  commit(record: Apply, ending: Ending): boolean {
    if (ending !== "lost") this.journal.push(record);
    if (ending === "well") this.state.apply(record);
    else this.crash();
    return ending === "well";
  }

  crash(): void {
    this.state = new ClusterState({ mergeKindOf }, this.journal);
  }
}

const steps: readonly Step[] = ["w1", "w2", "w3", "send a", "send b", "take a", "take b"];

/** All orders of the steps in which w1 precedes w3, and each sending precedes its taking. */
function* orders(left: readonly Step[] = steps, done: readonly Step[] = []): Iterable<readonly Step[]> {
  if (left.length === 0) yield done;
  for (const step of left) {
    const before: Step | undefined =
      step === "w3" ? "w1" : step === "take a" ? "send b" : step === "take b" ? "send a" : undefined;
    if (before && !done.includes(before)) continue;
    yield* orders(
      left.filter((other) => other !== step),
      [...done, step],
    );
  }
}

/** Each order, without a crash, and with one at each place. */
function* histories(): Iterable<readonly (readonly [Step, Ending])[]> {
  for (const order of orders()) {
    const well = order.map((step): readonly [Step, Ending] => [step, "well"]);
    yield well;
    for (let place = 0; place <= order.length; place++) {
      const step = order[place];
      if (step !== undefined && !step.startsWith("send"))
        for (const ending of ["lost", "kept"] as const) yield well.with(place, [step, ending]);
      for (const crash of ["crash a", "crash b"] as const) yield well.toSpliced(place, 0, [crash, "well"]);
    }
  }
}

/** The three writes: by a, by b, by a again. */
const scripts: readonly (readonly (readonly [string, string | null])[])[] = [
  [
    ["k", "1"],
    ["k", "2"],
    ["k", "3"],
  ],
  [
    ["k", "1"],
    ["k", null],
    ["k", "3"],
  ],
  [
    ["approval/n", '{"epoch":1,"state":"approved"}'],
    ["approval/n", '{"epoch":1,"state":"rejected"}'],
    ["approval/n", '{"epoch":1,"state":"approved"}'],
  ],
];

function run(history: readonly (readonly [Step, Ending])[], script: (typeof scripts)[number]): void {
  const sites = { a: new Site("a", 10), b: new Site("b", 5) };
  const mail: { a?: Apply; b?: Apply } = {};
  const acked: Register[] = [];
  const written: Register[] = [];
  for (const [step, ending] of history) {
    const site = step === "w2" || step.endsWith(" b") ? sites.b : sites.a;
    if (step.startsWith("w")) {
      const [key, text] = script[Number(step[1]) - 1] as readonly [string, string | null];
      const { record, register } = site.write(key, text);
      if (ending !== "lost") written.push(register);
      if (site.commit(record, ending)) acked.push(register);
    } else if (step === "send a") mail.b = sites.a.answer(sites.b.state.map.vector);
    else if (step === "send b") mail.a = sites.b.answer(sites.a.state.map.vector);
    else if (step.startsWith("take")) site.commit((step === "take a" ? mail.a : mail.b) as Apply, ending);
    else site.crash();
  }
  for (let round = 0; round < 2; round++) {
    sites.a.commit(sites.b.answer(sites.a.state.map.vector), "well");
    sites.b.commit(sites.a.answer(sites.b.state.map.vector), "well");
  }
  const [a, b] = [sites.a.state.map, sites.b.state.map];
  const key = script[0]?.[0] as string;
  const final = a.get(key);
  const story = JSON.stringify(history);
  if (final !== b.get(key) && JSON.stringify(final) !== JSON.stringify(b.get(key)))
    throw new Error(`diverged: ${story}`);
  if (a.digest.total() !== b.digest.total()) throw new Error(`digests differ: ${story}`);
  for (const register of acked)
    if (!final || !isAtLeast(key, final, register)) throw new Error(`lost ${register.o}:${register.s}: ${story}`);
  const due = written.filter(
    (register) =>
      final !== undefined &&
      register.text !== final.text &&
      !hasSeen(register, final) &&
      !written.some((other) => other !== register && hasSeen(other, register)),
  );
  for (const { state } of [sites.a, sites.b]) {
    const listed = state.conflicts().flatMap(({ loser, others = [] }) => [loser, ...others]);
    const names = listed.map(({ o, s }) => `${o}:${s}`).toSorted();
    if (
      names.join() !==
      due
        .map(({ o, s }) => `${o}:${s}`)
        .toSorted()
        .join()
    )
      throw new Error(`conflicts are ${names.join()}: ${story}`);
  }
}

describe("two replicas, three writes, one crash", () => {
  it("end the same in every interleaving, with every acknowledged write and every conflict", () => {
    let count = 0;
    for (const history of histories())
      for (const script of scripts) {
        run(history, script);
        count++;
      }
    expect(count).to.be.greaterThan(30_000);
  });
});
