import { expect } from "chai";
import fc from "fast-check";
import { watchCertificates } from "#controller/cluster/certificates.ts";
import { watchLiveness } from "#controller/cluster/node-lives.ts";
import { watchNodeNames } from "#controller/cluster/node-names.ts";
import { takeLoser } from "#controller/cluster/conflicts.ts";
import { manageNodes, type Nodes } from "#controller/cluster/nodes.ts";
import { readRecords } from "#controller/cluster/records.ts";
import { watchRejects } from "#controller/cluster/rejects.ts";
import { isSecret, keys, mergeKindOf } from "#controller/cluster/registers.ts";
import { protocols } from "#controller/replica/messages.ts";
import { registrationOf } from "#support/controllers.ts";
import { connect, TestReplica, type Wire } from "#support/replica.ts";
import { Scheduler } from "../../../sim/scheduler.ts";

const by = "operator ann";
const options = { mergeKindOf, isSecret };

/** Controllers with one registered, approved node `n`; every pair is linked, and the links can be cut and healed. */
class Controllers {
  readonly scheduler = new Scheduler();
  readonly #replicas: TestReplica[] = [];
  readonly #wires: Wire[] = [];
  nodes: readonly Nodes[] = [];
  parts: readonly ReturnType<typeof partsOf>[] = [];

  static async start(count: number, protocol: number = protocols[1], isManual = false): Promise<Controllers> {
    const all = new Controllers();
    const ids = Array.from({ length: count }, (_, index) => `c${index + 1}`);
    const first = new TestReplica(all.scheduler, "c1", options);
    await first.register(...ids);
    await first.replica.write(
      ids.map((id) => ({ key: keys.controller(id).version, value: { version: "1", protocol } })),
    );
    all.#replicas.push(
      first,
      ...ids.slice(1).map((id) => new TestReplica(all.scheduler, id, { ...options, start: "join" })),
    );
    await all.heal();
    const clock = (): number => 1_700_000_000_000 + all.scheduler.now;
    all.parts = all.#replicas.map(({ replica, id }) => partsOf(replica, id, clock, isManual));
    all.nodes = all.parts.map(({ nodes }) => nodes);
    const caller = { id: "n", key: "k", serial: "01", certificateExpiresAt: 9e12 };
    await all.nodes[0]?.register(caller, registrationOf("n"));
    await all.settle();
    return all;
  }

  async settle(): Promise<void> {
    await this.scheduler.runUntil(this.scheduler.now + 5_000);
  }

  cut(): void {
    for (const wire of this.#wires.splice(0)) wire.cut();
  }

  async heal(): Promise<void> {
    this.cut();
    for (const [index, replica] of this.#replicas.entries())
      for (const other of this.#replicas.slice(index + 1)) this.#wires.push(connect(replica, other));
    await this.settle();
  }

  approvals(): string[] {
    return this.nodes.map((nodes) => nodes.get("n").approval);
  }

  conflicts(): number[] {
    return this.#replicas.map(({ replica }) => replica.conflicts().length);
  }
}

function partsOf(replica: TestReplica["replica"], controllerId: string, clock: () => number, isManual: boolean) {
  const records = readRecords(replica);
  const rejects = watchRejects(records);
  const nodes = manageNodes({
    records,
    certificates: watchCertificates(records, clock),
    rejects,
    liveness: watchLiveness({ replica, controllerId, staleAfterMs: 90_000, clock, monotonic: clock }),
    names: watchNodeNames(records),
    controllerId,
    isManual: () => isManual,
    endpoints: () => [],
    clock,
  });
  return { records, rejects, nodes };
}

describe("rejects of nodes", () => {
  it("V1: stand against an approve that has read another reject, wherever that was made", async () => {
    const all = await Controllers.start(2);
    const [here, there] = all.nodes as [Nodes, Nodes];
    all.cut();
    await here.setApproval("n", { state: "rejected", by });
    await there.setApproval("n", { state: "rejected", by });
    await there.setApproval("n", { state: "approved", by });
    expect(all.approvals()).to.deep.equal(["rejected", "approved"]);
    await all.heal();
    expect(all.approvals()).to.deep.equal(["rejected", "rejected"]);
    expect(Math.min(...all.conflicts())).to.be.greaterThan(0);
    // Whoever has read them all lets it in, everywhere.
    await there.setApproval("n", { state: "approved", by });
    await all.settle();
    expect(all.approvals()).to.deep.equal(["approved", "approved"]);
  });

  it("V1: stand when they are said again, with the conflict listed", async () => {
    const all = await Controllers.start(2);
    const [here, there] = all.nodes as [Nodes, Nodes];
    await here.setApproval("n", { state: "rejected", by, reason: "first" });
    await all.settle();
    all.cut();
    await there.setApproval("n", { state: "approved", by });
    await here.setApproval("n", { state: "rejected", by, reason: "again" });
    await all.heal();
    expect(all.approvals()).to.deep.equal(["rejected", "rejected"]);
    expect(all.nodes.map((nodes) => nodes.get("n").approvalReason)).to.deep.equal(["again", "again"]);
    expect(Math.min(...all.conflicts())).to.be.greaterThan(0);
  });

  it("V1: go when the approve that lost to them is taken", async () => {
    const all = await Controllers.start(2, protocols[1], true);
    const [here, there] = all.nodes as [Nodes, Nodes];
    all.cut();
    await here.setApproval("n", { state: "approved", by });
    await there.setApproval("n", { state: "rejected", by });
    await all.heal();
    expect(all.approvals()).to.deep.equal(["rejected", "rejected"]);
    const [part] = all.parts;
    const [conflict] = part?.records.replica.conflicts() ?? [];
    if (part && conflict) await takeLoser(part, conflict.id, by);
    await all.settle();
    expect(all.approvals()).to.deep.equal(["approved", "approved"]);
  });

  it("V1: are written as before while some controller knows nothing of them", async () => {
    const all = await Controllers.start(2, 1);
    const [here, there] = all.nodes as [Nodes, Nodes];
    await here.setApproval("n", { state: "rejected", by });
    await all.settle();
    expect(all.approvals()).to.deep.equal(["rejected", "rejected"]);
    expect(
      there
        .get("n")
        .registers.map(({ key }) => key)
        .filter((key) => key.includes("/reject/")),
    ).to.deep.equal([]);
    await there.setApproval("n", { state: "approved", by });
    await all.settle();
    expect(all.approvals()).to.deep.equal(["approved", "approved"]);
  });

  it("V1: stand exactly while some reject is left that no approve has read, whatever is cut and in whatever order", async function () {
    this.timeout(60_000);
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("approved", "rejected"), at: fc.nat(2) }) },
      { weight: 1, arbitrary: fc.constant({ do: "cut", at: 0 }) },
      { weight: 1, arbitrary: fc.constant({ do: "heal", at: 0 }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        const all = await Controllers.start(3);
        // The model: of every controller which rejects it has read, and which of them it knows to be overruled.
        const model = all.nodes.map(() => ({ read: new Set<number>(), overruled: new Set<number>() }));
        let isCut = false;
        let made = 0;
        const share = (): void => {
          for (const part of ["read", "overruled"] as const) {
            const union = new Set(model.flatMap((one) => [...one[part]]));
            for (const one of model) one[part] = new Set(union);
          }
        };
        for (const { do: what, at } of [...steps, { do: "heal", at: 0 }]) {
          const own = model[at];
          if (what === "cut") {
            all.cut();
            isCut = true;
          } else if (what === "heal") {
            await all.heal();
            isCut = false;
          } else {
            await all.nodes[at]?.setApproval("n", { state: what as "approved", by });
            if (what === "rejected") own?.read.add(made++);
            else for (const reject of own?.read ?? []) own?.overruled.add(reject);
          }
          if (!isCut) {
            await all.settle();
            share();
          }
          const due = model.map(({ read, overruled }) =>
            [...read].some((reject) => !overruled.has(reject)) ? "rejected" : "approved",
          );
          expect(all.approvals()).to.deep.equal(due);
        }
      }),
      { numRuns: 25 },
    );
  });
});
