import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { keys } from "#controller/cluster/registers.ts";
import { isTooLarge, makePlan } from "#controller/updates/plan-update.ts";
import { maxValueBytes } from "#crdt/register.ts";
import { UpdateStatement } from "#rollout/spec.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { bundleOf } from "#support/update-world.ts";
import { aNode, aSpec, SteppedRollout } from "#support/stepped-rollout.ts";

const aFlake = { flakeRef: "github:example/fleet", flakeRev: "0123456789abcdef0123456789abcdef01234567" };

/** The waves and bytes of the longest progress record of a rollout with so many nodes. */
function largestProgress(count: number): { readonly waves: readonly (readonly string[])[]; readonly bytes: number } {
  const nodes = Array.from({ length: count }, () => aNode(randomUUID()));
  const rollout = new SteppedRollout({ nodes, spec: {} }).settle();
  const { waves } = rollout.progress;
  const whole = { ...rollout.progress, started: waves.flat() };
  return { waves, bytes: Buffer.byteLength(JSON.stringify(whole)) };
}

describe("the plan of an update", () => {
  let known: KnownUpdates;
  beforeEach(async () => (known = await new KnownUpdates().nodes("n1", "n2", "n3")));
  afterEach(() => known.stop());
  const plan = (more: object) => makePlan(known.parts, { name: "u", spec: aSpec(more) });

  it("is blocked by a canary that is no node, or that the selector leaves out", () => {
    const canary = (...nodeIds: readonly string[]) => ({ strategy: { type: "canary", canary: { nodeIds } } });
    const some = { selector: { nodeIds: ["n1", "n2"] }, target: aFlake };
    expect(plan({ ...some, ...canary("n2") })).to.deep.include({ viable: true, blockers: [] });
    expect(plan({ ...some, ...canary("n3", "n4") })).to.deep.include({
      viable: false,
      blockers: [
        "no node of this cluster is “n4”, which strategy.canary.nodeIds names",
        "strategy.canary.nodeIds names “n3”, which the selector leaves out: select it, too, or name another canary",
      ],
    });
    // An empty selection is the only blocker.
    expect(plan({ target: aFlake, selector: { labels: ["tier=web"] }, ...canary("n3") }).blockers).to.deep.equal([
      "no node of this cluster has the label “tier=web”, which selector.labels wants",
      "the selector means no node",
    ]);
  });

  it("is blocked by a downgrade, too little room on a node, and an updater that takes no orders", () => {
    const bundle = bundleOf("0.2.0");
    const planned = (target: object, storeFree = 1e9, more = {}) => {
      const usage = { cpu: 0, memory: 0, storeFree, ...more };
      const liveness: typeof known.parts.liveness = { of: (id) => ({ ...known.parts.liveness.of(id), usage }) };
      const spec = aSpec({ selector: { nodeIds: ["n1"] }, target: { version: "0.2.0", ...target } });
      const { viable, nodes } = makePlan({ ...known.parts, liveness }, { name: "u", spec, bundle });
      return [viable, ...(nodes[0]?.blockers ?? [])];
    };
    expect(planned({})).to.deep.equal([
      false,
      "it runs 1.0, which is newer; target.allowDowngrade: true goes back all the same",
    ]);
    expect(planned({ allowDowngrade: true })).to.deep.equal([true]);
    expect(planned({ allowDowngrade: true }, 3_999)).to.deep.equal([
      false,
      "the bundle needs 4000 bytes there, and 3999 are free",
    ]);
    expect(planned({ allowDowngrade: true }, 1e9, { orderUntaken: 20 })).to.deep.equal([
      false,
      "its updater has not taken an order for 20 s: systemctl status kcore-updater.path kcore-updater",
    ]);
  });

  it("is blocked by a node without NixOS if the target is a flake", async () => {
    await known.debian("n1");
    const blockers = (nodeIds: readonly string[], more: object) =>
      plan({ selector: { nodeIds }, ...more }).nodes.flatMap((node) => node.blockers);
    expect(blockers(["n1", "n2"], { target: aFlake })).to.deep.equal([
      "it is no NixOS system, and target.flakeRef brings one; target.version brings kcore's runtime",
    ]);
    expect(blockers(["n1"], {})).to.deep.equal([]);
  });

  it("is blocked by an unfinished update that has a node in common", async () => {
    const other = new SteppedRollout({ nodes: ["n1", "n2"] }).set({ name: "other" }).confirm();
    await known.update(other);
    const blockers = (...nodeIds: readonly string[]) => plan({ target: aFlake, selector: { nodeIds } }).blockers;
    expect(blockers("n2", "n3")).to.deep.equal(["the update “other” is not over, and has n2 too"]);
    expect(blockers("n3")).to.deep.equal([]);
    await known.update(other.finish("n1").finish("n2"));
    expect(blockers("n2", "n3")).to.deep.equal([]);
  });

  it("has the next generation with `again` for an ended update, and the same one before its end", async () => {
    const other = new SteppedRollout({ nodes: ["n1", "n2"] }).set({ name: "other" }).confirm();
    const { spec } = await known
      .update(other)
      .then(({ head }) => UpdateStatement.parse(JSON.parse(head.value.signed.statement)));
    const generation = (again: boolean) => makePlan(known.parts, { name: "other", spec, again }).generation;
    expect([generation(false), generation(true)]).to.deep.equal([1, 1]);
    await known.update(other.finish("n1").finish("n2"));
    expect([generation(false), generation(true)]).to.deep.equal([1, 2]);
  });

  it("has a generation above every generation that a node reports, also with the same manifest", async () => {
    const other = new SteppedRollout({ nodes: ["n1", "n2"] }).set({ name: "other" }).confirm();
    const { head } = await known.update(other);
    const { spec } = UpdateStatement.parse(JSON.parse(head.value.signed.statement));
    const planned = () => makePlan(known.parts, { name: "other", spec });
    expect(planned()).to.include({ result: "unchanged", generation: 1 });
    const report = other.view.reports.get("n1");
    const value = { ...report, epoch: 99, fence: { ...report?.fence, generation: 3 } };
    await known.parts.records.write([{ key: keys.update("other").report("n1"), value }]);
    expect(planned()).to.include({ result: "updated", generation: 4 });
  });

  it("has likelyRequiresReboot only if reboots are known", () => {
    const reboots = (rebootPolicy: string) => plan({ target: aFlake, activation: { rebootPolicy } });
    expect(reboots("if-required").nodes.map((node) => node.reboots)).to.deep.equal(["unknown", "unknown", "unknown"]);
    expect(reboots("if-required")).not.to.have.property("likelyRequiresReboot");
    expect(reboots("never").likelyRequiresReboot).to.equal(false);
    expect(reboots("always").likelyRequiresReboot).to.equal(true);
  });

  it("is refused with more nodes than its progress record can hold", () => {
    for (const count of [1, 200, 600]) {
      const { waves, bytes } = largestProgress(count);
      expect([isTooLarge(waves), bytes < maxValueBytes], String(count)).to.deep.equal([false, true]);
    }
    const { waves, bytes } = largestProgress(1_000);
    expect([isTooLarge(waves), bytes > maxValueBytes]).to.deep.equal([true, true]);
  });
});
