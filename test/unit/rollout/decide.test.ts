import { expect } from "chai";
import { decide } from "#rollout/decide.ts";
import { lookAtHooks } from "#rollout/hooks.ts";
import { reasonOf } from "#rollout/reason.ts";
import { aNode, old, SteppedRollout, target } from "#support/stepped-rollout.ts";

const two = { strategy: { type: "batch", maxUnavailable: 2 } };

function begun(nodes: ConstructorParameters<typeof SteppedRollout>[0]["nodes"], spec: object = {}): SteppedRollout {
  return new SteppedRollout({ nodes, spec }).settle().confirm();
}

describe("the decision", () => {
  it("is the owner's alone", () => {
    const { view } = new SteppedRollout({ nodes: ["n1"] });
    expect(decide({ ...view, self: "c2" })).to.deep.equal({ rows: new Map() });
  });

  it("leaves the records of a newer manifest alone", () => {
    const rollout = begun(["n1"]);
    const { view } = rollout;
    for (const known of [
      { progress: { ...rollout.progress, generation: 2 } },
      { rows: new Map([["n1", { ...rollout.row("n1"), generation: 2 }]]) },
    ])
      expect(decide({ ...view, ...known })).to.deep.equal({ rows: new Map() });
  });

  it("takes one node after the other through all of it", () => {
    const rollout = begun(["n1", "n2"]);
    expect(rollout.phases).to.equal("n1=preparing n2=pending");
    rollout.report("n1", "prepared");
    expect(rollout.phases).to.equal("n1=activating n2=pending");
    rollout.report("n1", "activated");
    expect(rollout.phases).to.equal("n1=succeeded n2=preparing");
    rollout.finish("n2");
    expect(rollout.progress).to.deep.include({ phase: "succeeded", started: ["n1", "n2"] });
    expect(rollout.row("n1").from).to.deep.equal(old);
  });

  it("takes back what has the target by an earlier generation of it, the last of all", () => {
    const rollout = new SteppedRollout({ nodes: ["n1", "n2"] }).settle();
    rollout.report("n1", "fenced", { present: target, previous: old }).confirm("n2");
    rollout.finish("n2").wish("rollback");
    expect(rollout.phases).to.equal("n1=succeeded n2=rolling_back");
    rollout.report("n2", "rolled_back");
    expect(rollout.phases).to.equal("n1=rolling_back n2=rolled_back");
    expect(rollout.row("n1").untouched).to.equal(undefined);
    rollout.report("n1", "rolled_back");
    expect([rollout.phases, rollout.progress.phase]).to.deep.equal(["n1=rolled_back n2=rolled_back", "rolled_back"]);
  });

  it("has not taken back what runs another update's by now, and says so", () => {
    const rollout = new SteppedRollout({ nodes: ["n1"] }).settle().confirm("n1").finish("n1").wish("rollback");
    expect(rollout.phases).to.equal("n1=rolling_back");
    const failure = { kind: "rollback", message: "the node runs 3.0, which came after this update" } as const;
    rollout.report("n1", "failed", { present: { id: "/nix/store/newer", version: "3.0", generation: 3 }, failure });
    expect(rollout.phases).to.equal("n1=failed");
    expect(rollout.progress).to.include({ phase: "failed", reason: "not taken back: n1" });
  });

  it("does so by itself when a later generation fails", () => {
    const rollout = new SteppedRollout({ nodes: ["n1", "n2"], spec: { rollback: { automatic: true } } }).settle();
    rollout.report("n1", "fenced", { present: target, previous: old }).confirm("n2");
    rollout.report("n2", "failed", { failure: { kind: "build", message: "no room" } });
    expect(rollout.phases).to.equal("n1=rolling_back n2=failed");
  });

  it("does not touch what has the target", () => {
    const rollout = new SteppedRollout({ nodes: ["n1", "n2"] }).settle();
    rollout.report("n1", "fenced", { present: target }).confirm("n2");
    expect(rollout.phases).to.equal("n1=succeeded n2=preparing");
    expect(rollout.progress.started).to.deep.equal(["n2"]);
    rollout.finish("n2").wish("rollback");
    expect(rollout.phases).to.equal("n1=succeeded n2=rolling_back");
    rollout.report("n2", "rolled_back");
    expect(rollout.progress.phase).to.equal("rolled_back");
  });

  it("names a node that has a later manifest of a former owner, which takes no order of this one", () => {
    const rollout = new SteppedRollout({ nodes: ["n1"] }).settle();
    const fence = { name: rollout.view.name, epoch: 0, owner: "c0", generation: 3, seq: 4 };
    rollout.report("n1", "fenced", { fence });
    expect(rollout.progress.waits).to.equal(
      "n1, which has the later generation 3 of a former owner: cancel the update, and apply it once more",
    );
  });

  it("G2: names a node whose updater takes no order, in what is waited for and in the failure", () => {
    const silent = "n1, whose updater takes no order: systemctl status kcore-updater.path kcore-updater";
    const waiting = new SteppedRollout({ nodes: [aNode("n1", { orderUntaken: 20 }), "n2"] }).settle();
    expect(waiting.progress.waits).to.include(silent);
    const rollout = begun([aNode("n1", { orderUntaken: 20 }), "n2"]);
    expect(rollout.phases).to.equal("n1=preparing n2=pending");
    expect(rollout.progress.waits).to.equal(silent);
    rollout.after(24 * 3600);
    expect(rollout.row("n1").failure?.message)
      .to.match(/^the node did not say within \d+ s and a minute/)
      .and.include(silent);
  });

  it("waits for a node that the selector means", () => {
    const rollout = new SteppedRollout({ nodes: ["n1"], spec: { selector: { nodeIds: ["n2"] } } }).settle();
    expect(rollout.progress).to.deep.include({ phase: "ready", waits: "a node that the selector means" });
    rollout.node("n2", {});
    expect(rollout.progress).to.deep.include({ phase: "rolling_out", waits: "n2, which has not confirmed its owner" });
  });

  it("takes in no node that nobody approved when another owner wrote over its progress", () => {
    const rollout = new SteppedRollout({ nodes: ["n1"], spec: { approvalPolicy: "manual" } }).set({ isApproved: true });
    const { view } = rollout.settle();
    const pending = { ...rollout.progress, phase: "pending" as const };
    const nodes = new Map([...view.nodes, ["n2", aNode("n2")] as const]);
    const again = (isApproved: boolean) => decide({ ...view, nodes, progress: pending, isApproved }).progress?.waves;
    expect(again(false)).to.deep.equal([["n1"]]);
    expect(again(true)).to.deep.equal([["n1"], ["n2"]]);
  });

  it("waits for another update that has nodes of it", () => {
    const rollout = new SteppedRollout({ nodes: ["n1"] }).set({ other: "hotfix" }).settle();
    expect(rollout.progress).to.deep.include({ phase: "ready", waits: "the update “hotfix”" });
    const { view } = rollout;
    const { other: _, ...alone } = view;
    expect(decide(alone).progress?.phase).to.equal("rolling_out");
  });

  it("takes the next manifest from the beginning", () => {
    const rollout = begun(["n1"]).finish("n1");
    const before = rollout.row("n1").seq;
    rollout.set({ generation: 2, target: { id: "/nix/store/newer", version: "3.0" } });
    expect(rollout.progress).to.deep.include({ phase: "rolling_out", generation: 2, started: [] });
    expect(rollout.row("n1")).to.deep.include({ phase: "pending", generation: 2, seq: before + 1 });
    // What the node said of the first says nothing of the second.
    expect(rollout.progress.waits).to.equal("n1, which has not confirmed its owner");
    rollout.report("n1", "fenced", { present: target });
    expect(rollout.phases).to.equal("n1=preparing");
  });

  it("tells what it waits for in few words, however many nodes it waits for", () => {
    const names = Array.from({ length: 200 }, (_, at) => `n${at}`);
    const rollout = new SteppedRollout({
      nodes: names,
      spec: { strategy: { type: "batch", maxUnavailable: 200 } },
    }).settle();
    expect(rollout.progress.waits)
      .to.match(/^n0, which has not confirmed its owner; .* …$/)
      .and.have.lengthOf(2_000);
  });

  it("writes no more at once than a transaction holds, however many nodes there are, and however much they say", () => {
    const ids = Array.from({ length: 600 }, (_, index) => `n${index}`);
    const rollout = new SteppedRollout({ nodes: ids, spec: { strategy: { type: "batch", maxUnavailable: 600 } } });
    const within = (): void => {
      for (const [rows, bytes] of rollout.sizes.splice(0)) {
        expect(rows).to.be.below(500);
        expect(bytes).to.be.below(512 * 1024);
      }
      expect(rollout.view.rows.size).to.equal(600);
    };
    rollout.settle();
    within();
    const failure = { kind: "service", message: "部".repeat(2_000) } as const;
    const failed = [...rollout.view.rows].map(
      ([id, row]) => [id, { ...row, phase: "failed" as const, failure }] as const,
    );
    rollout.takeOver("c2", { rows: new Map(failed) });
    expect([...rollout.view.rows.values()].every(({ owner }) => owner === "c2")).to.equal(true);
    within();
    const cancelled = new SteppedRollout({ nodes: ids }).settle().wish("cancel").after(661);
    expect([...cancelled.view.rows.values()].every(({ phase }) => phase === "cancelled")).to.equal(true);
    expect(cancelled.progress.phase).to.equal("cancelled");
  });

  it("waits for no node that was prepared and is removed from the cluster", () => {
    const rollout = begun(["n1", "n2"]).node("n2", { isReady: false });
    rollout.report("n1", "prepared");
    expect(rollout.phases).to.equal("n1=prepared n2=pending");
    rollout.set({ nodes: new Map([["n2", aNode("n2")]]) });
    expect(rollout.phases).to.equal("n1=prepared n2=preparing");
    rollout.finish("n2");
    expect(rollout.progress.phase).to.equal("succeeded");
  });

  it("is done with nodes that are removed from the cluster meanwhile", () => {
    const rollout = begun(["n1", "n2"]).finish("n1");
    rollout.set({ nodes: new Map([["n1", aNode("n1", { version: "2.0" })]]) });
    expect(rollout.phases).to.equal("n1=succeeded n2=preparing");
    expect(rollout.progress.phase).to.equal("succeeded");
  });

  it("goes no further behind a node that failed, though that is removed from the cluster", () => {
    const rollout = begun(["n1", "n2", "n3"], { strategy: { type: "batch", maxUnavailable: 2 } });
    rollout.report("n1", "prepared").report("n2", "prepared");
    rollout.report("n1", "failed", { failure: { kind: "service", message: "it died" } });
    const { n1: _, ...left } = Object.fromEntries(rollout.view.nodes);
    rollout.set({ nodes: new Map(Object.entries(left)) }).report("n2", "activated");
    expect(rollout.phases).to.equal("n1=failed n2=succeeded n3=cancelled");
    expect(rollout.progress).to.deep.include({ phase: "failed", reason: "n1: it died" });
  });

  it("goes no further when a node was removed while it was under way, and nobody knows what came of it", () => {
    const rollout = begun(["n1", "n2"]).report("n1", "prepared");
    rollout.set({ nodes: new Map([["n2", aNode("n2")]]) }).after(661);
    expect(rollout.phases).to.equal("n1=failed n2=cancelled");
    expect(rollout.progress.phase).to.equal("failed");
    expect(rollout.wish("rollback").progress.phase).to.equal("rolled_back");
  });
});

describe("approval", () => {
  it("is waited for by the policy manual, and may be taken back before it began", () => {
    const rollout = new SteppedRollout({ nodes: ["n1"], spec: { approvalPolicy: "manual" } }).settle();
    expect(rollout.progress).to.deep.include({ phase: "pending", waits: "approval" });
    rollout.set({ isApproved: true, hasMajority: false });
    expect(rollout.progress.phase).to.equal("ready");
    rollout.set({ isApproved: false });
    expect(rollout.progress).to.deep.include({ phase: "pending", waits: "approval" });
    rollout.set({ isApproved: true, hasMajority: true });
    expect(rollout.progress.phase).to.equal("rolling_out");
  });

  it("is needed by the policy auto-non-disruptive for a node that has to reboot or to be drained", () => {
    const spec = { approvalPolicy: "auto-non-disruptive" };
    expect(begun(["n1"], spec).report("n1", "prepared").phases).to.equal("n1=activating");
    const reboots = begun(["n1"], spec).report("n1", "prepared", { needsReboot: true });
    expect(reboots.phases).to.equal("n1=prepared");
    expect(reboots.progress.waits).to.equal("approval: n1 has to reboot");
    expect(reboots.set({ isApproved: true }).phases).to.equal("n1=activating");
    const drains = begun(["n1"], { ...spec, drain: { enabled: true, command: "drain" } }).report("n1", "prepared");
    expect(drains.progress.waits).to.equal("approval: n1 has to be drained");
    expect(drains.set({ isApproved: true }).phases).to.equal("n1=draining");
  });

  it("is not asked for by the policy auto", () => {
    expect(begun(["n1"]).report("n1", "prepared", { needsReboot: true }).phases).to.equal("n1=activating");
  });
});

describe("how many nodes may be down", () => {
  it("is what batches keep to, and a batch ends before the next begins", () => {
    const rollout = begun(["n1", "n2", "n3"], two);
    expect(rollout.phases).to.equal("n1=preparing n2=preparing n3=pending");
    rollout.finish("n1");
    expect(rollout.phases).to.equal("n1=succeeded n2=preparing n3=pending");
    rollout.finish("n2");
    expect(rollout.phases).to.equal("n1=succeeded n2=succeeded n3=preparing");
  });

  it("holds back what a larger batch has prepared", () => {
    const rollout = begun(["n1", "n2", "n3"], { strategy: { type: "batch", batchSize: 3 } });
    expect(rollout.phases).to.equal("n1=preparing n2=preparing n3=preparing");
    for (const id of ["n1", "n2", "n3"]) rollout.report(id, "prepared");
    expect(rollout.phases).to.equal("n1=activating n2=prepared n3=prepared");
    expect(rollout.progress.waits).to.equal("n1: down or under way, and 1 may be");
    rollout.report("n1", "activated");
    expect(rollout.phases).to.equal("n1=succeeded n2=activating n3=prepared");
  });

  it("counts nodes that are not ready, also when that comes while others prepare", () => {
    const rollout = begun(["n1", "n2", aNode("n3", { isReady: false })]);
    expect(rollout.progress.waits).to.equal("n3: down or under way, and 1 may be");
    rollout.node("n3", { isReady: true });
    expect(rollout.phases).to.equal("n1=preparing n2=pending n3=pending");
    rollout.node("n2", { isReady: false }).report("n1", "prepared");
    expect(rollout.phases).to.equal("n1=prepared n2=pending n3=pending");
    rollout.node("n2", { isReady: true });
    expect(rollout.phases).to.equal("n1=activating n2=pending n3=pending");
  });

  it("counts nodes that have not confirmed their owner", () => {
    const rollout = new SteppedRollout({ nodes: ["n1", "n2"] }).settle().confirm("n1");
    expect(rollout.phases).to.equal("n1=pending n2=pending");
    // It is well; where it were down, too, that is what somebody has to mend.
    expect(rollout.progress.waits).to.equal("n2, which has not confirmed its owner");
    rollout.node("n2", { isReady: false });
    expect(rollout.progress.waits).to.equal("n2: down or under way, and 1 may be");
    rollout.node("n2", { isReady: true });
    expect(rollout.confirm("n2").phases).to.equal("n1=preparing n2=pending");
  });

  it("counts a node that was given up and may still get its order, until it knows", () => {
    const rollout = begun(["n1", "n2", "n3"], { rollback: { automatic: true } })
      .finish("n1")
      .report("n2", "prepared");
    const order = { name: "u", epoch: 1, owner: "c1", generation: 1, seq: rollout.row("n2").seq - 1 };
    rollout.after(700);
    // It has to be taken back first, since it may yet come to activate.
    expect(rollout.phases).to.equal("n1=succeeded n2=rolling_back n3=cancelled");
    rollout.after(700);
    expect(rollout.row("n2").failure?.kind).to.equal("rollback");
    rollout.report("n2", "prepared", { fence: order });
    expect(rollout.phases).to.equal("n1=succeeded n2=failed n3=cancelled");
    expect(rollout.progress.waits).to.equal("n2: down or under way, and 1 may be");
    rollout.report("n2", "prepared");
    expect(rollout.phases).to.equal("n1=rolling_back n2=failed n3=cancelled");
  });

  it("counts a node that was given up while it goes back, until it is back", () => {
    const rollout = begun(["n1", "n2"], { rollback: { automatic: true } })
      .finish("n1")
      .report("n2", "prepared")
      .report("n2", "failed", { present: target });
    const order = { name: "u", epoch: 1, owner: "c1", generation: 1, seq: rollout.row("n2").seq };
    rollout.report("n2", "rolling_back", { present: target }).after(700);
    expect(rollout.phases).to.equal("n1=succeeded n2=failed");
    expect(rollout.progress.waits).to.equal("n2: down or under way, and 1 may be");
    expect(rollout.report("n2", "rolled_back", { fence: order }).phases).to.equal("n1=rolling_back n2=rolled_back");
  });

  it("starts no node that is not ready, not approved or gone", () => {
    const rollout = begun(["n1"], two).node("n1", { isApproved: false });
    rollout.report("n1", "prepared");
    expect(rollout.progress.waits).to.equal("n1, which is not approved");
    rollout.node("n1", { isApproved: true, isReady: false, reason: "disk" });
    expect(rollout.progress.waits).to.equal("n1, which is not ready: disk");
    expect(rollout.node("n1", { isReady: true }).phases).to.equal("n1=activating");
  });
});

describe("controllers", () => {
  const cluster = [
    aNode("c1", { isController: true }),
    aNode("c2", { isController: true }),
    aNode("c3", { isController: true }),
  ];
  const spec = { strategy: { type: "batch", maxUnavailable: 3 } };

  it("go one at a time, the owner last", () => {
    const rollout = begun(cluster, spec);
    for (const id of ["c2", "c3", "c1"]) {
      expect(rollout.written.at(-1)).to.deep.equal([id, "preparing"]);
      expect([...rollout.view.rows.values()].filter(({ phase }) => phase === "preparing")).to.have.length(1);
      rollout.finish(id);
    }
    expect(rollout.progress.phase).to.equal("succeeded");
  });

  it("wait until each other is ready and all replicate", () => {
    const rollout = begun(cluster, spec).report("c2", "prepared").report("c2", "activated");
    rollout.node("c2", { replication: "2 s behind" });
    rollout.report("c3", "prepared");
    expect(rollout.phases).to.equal("c1=pending c2=succeeded c3=prepared");
    expect(rollout.progress.waits).to.equal("the replication of c2: 2 s behind");
    rollout.set({
      nodes: new Map([...rollout.view.nodes, ["c2", aNode("c2", { isController: true, version: "2.0" })]]),
    });
    expect(rollout.phases).to.equal("c1=pending c2=succeeded c3=activating");
    rollout.report("c3", "activated").node("c2", { isReady: false }).report("c1", "prepared");
    expect(rollout.progress.waits).to.equal("c2, a controller that is not ready");
  });

  it("go back one at a time too, whatever their replication says", () => {
    const rollout = begun(cluster, spec);
    for (const id of ["c2", "c3", "c1"]) rollout.finish(id);
    rollout.node("c2", { replication: "2 s behind" }).wish("rollback");
    expect(rollout.phases).to.equal("c1=rolling_back c2=succeeded c3=succeeded");
  });
});

describe("a start", () => {
  it("needs a majority of the controllers, also when the node was prepared before it was lost", () => {
    const rollout = begun(["n1"]).set({ hasMajority: false }).report("n1", "prepared");
    expect(rollout.phases).to.equal("n1=prepared");
    expect(rollout.progress.waits).to.equal("a majority of the controllers, which this one does not reach");
    expect(rollout.set({ hasMajority: true }).phases).to.equal("n1=activating");
  });

  it("lies inside of the maintenance window, also when it was prepared inside of it", () => {
    const at = (time: string): { readonly now: number } => ({ now: Date.parse(`2026-03-04T${time}:00Z`) });
    const spec = { window: { from: "01:00", to: "02:00" } };
    const rollout = new SteppedRollout({ nodes: ["n1"], spec });
    rollout.set(at("00:59"));
    expect(rollout.progress).to.deep.include({ phase: "ready", waits: "the maintenance window, from 01:00 UTC" });
    rollout.set(at("01:30")).confirm();
    expect(rollout.phases).to.equal("n1=preparing");
    rollout.set(at("02:00")).report("n1", "prepared");
    expect(rollout.phases).to.equal("n1=prepared");
    expect(rollout.set({ now: Date.parse("2026-03-05T01:00:00Z") }).phases).to.equal("n1=activating");
  });
});

describe("canaries", () => {
  const spec = { strategy: { type: "canary", maxUnavailable: 2 } };

  it("wait for promotion", () => {
    const rollout = begun(["n1", "n2"], spec).finish("n1");
    expect(rollout.phases).to.equal("n1=succeeded n2=pending");
    expect(rollout.progress.waits).to.equal("promotion");
    rollout.after(1_000_000).wish("promote", { generation: 2 });
    expect(rollout.phases).to.equal("n1=succeeded n2=pending");
    expect(rollout.wish("promote").phases).to.equal("n1=succeeded n2=preparing");
  });

  it("or for their time", () => {
    const soaking = { strategy: { ...spec.strategy, canary: { soakSeconds: 100 } } };
    const rollout = begun(["n1", "n2"], soaking).finish("n1").after(99);
    expect(rollout.phases).to.equal("n1=succeeded n2=pending");
    expect(rollout.progress.waits).to.match(/^promotion, or 100 s since 1970/);
    expect(rollout.after(1).phases).to.equal("n1=succeeded n2=preparing");
  });

  it("are not promoted by their time while one of them is not well; that time counts on", () => {
    const soaking = { strategy: { ...spec.strategy, canary: { nodeIds: ["n1", "n2"], soakSeconds: 100 } } };
    const rollout = begun(["n1", "n2", "n3"], soaking).finish("n1").finish("n2").after(50);
    rollout.node("n2", { isReady: false, reason: "disk" });
    const waits = /^promotion, or 100 s since \S+ and n2, which is not ready: disk$/;
    expect(rollout.progress.waits).to.match(waits);
    expect(rollout.after(500).phases).to.equal("n1=succeeded n2=succeeded n3=pending");
    expect(rollout.progress.waits).to.match(waits);
    rollout.node("n2", { isApproved: false });
    expect(rollout.progress.waits).to.match(/ and n2, which is not approved$/);
    rollout.node("n2", { isApproved: true, isReady: true, version: target.version });
    expect(rollout.phases).to.equal("n1=succeeded n2=succeeded n3=preparing");
  });

  it("are promoted by somebody alone when one of them was removed from the cluster, and by their time when it is back", () => {
    const soaking = { strategy: { ...spec.strategy, canary: { nodeIds: ["n1", "n2"], soakSeconds: 100 } } };
    const gone = (): SteppedRollout => {
      const rollout = begun(["n1", "n2", "n3"], soaking).finish("n1").finish("n2");
      const { nodes } = rollout.view;
      rollout.set({ nodes: new Map([...nodes].filter(([id]) => id !== "n2")) }).after(500);
      expect(rollout.phases).to.equal("n1=succeeded n2=succeeded n3=pending");
      expect(rollout.progress.waits).to.equal("promotion alone: the canary n2 is no node of this cluster any more");
      return rollout;
    };
    expect(gone().wish("promote").phases).to.equal("n1=succeeded n2=succeeded n3=preparing");
    expect(gone().node("n2", { version: target.version }).phases).to.equal("n1=succeeded n2=succeeded n3=preparing");
  });

  it("are promoted by somebody whatever they are", () => {
    const soaking = { strategy: { ...spec.strategy, canary: { soakSeconds: 100 } } };
    const rollout = begun(["n1", "n2"], soaking).finish("n1").node("n1", { isReady: false }).after(500);
    expect(rollout.wish("promote").phases).to.equal("n1=succeeded n2=preparing");
  });

  it("are not waited for a second time by a new owner", () => {
    const rollout = begun(["n1", "n2"], spec).finish("n1").wish("promote").takeOver("c2").confirm("n2");
    expect(rollout.report("n1", "activated").phases).to.equal("n1=succeeded n2=preparing");
  });
});

describe("a failure", () => {
  it("stops all that is not begun, and lets an activation end", () => {
    const rollout = begun(["n1", "n2", "n3", "n4"], { strategy: { type: "batch", maxUnavailable: 3 } });
    rollout.report("n1", "prepared").report("n2", "prepared");
    expect(rollout.phases).to.equal("n1=activating n2=activating n3=preparing n4=pending");
    rollout.report("n1", "failed", { failure: { kind: "service", message: "it died" } });
    expect(rollout.phases).to.equal("n1=failed n2=activating n3=cancelled n4=cancelled");
    expect(rollout.progress.waits).to.equal("n2, which is not interrupted");
    rollout.report("n2", "activated");
    expect(rollout.progress).to.deep.include({ phase: "failed", reason: "n1: it died" });
    expect(rollout.phases).to.equal("n1=failed n2=succeeded n3=cancelled n4=cancelled");
  });

  it("takes all back by itself when the manifest says so, in reverse order", () => {
    const rollout = begun(["n1", "n2", "n3", "n4"], { rollback: { automatic: true } })
      .finish("n1")
      .finish("n2");
    rollout.report("n3", "prepared").report("n3", "failed", { failure: { kind: "service", message: "it died" } });
    // It went back by itself, so there is nothing to take back.
    expect(rollout.phases).to.equal("n1=succeeded n2=rolling_back n3=failed n4=cancelled");
    rollout.report("n3", "failed").report("n2", "rolled_back");
    expect(rollout.phases).to.equal("n1=rolling_back n2=rolled_back n3=failed n4=cancelled");
    rollout.report("n1", "rolled_back");
    expect(rollout.progress).to.deep.include({ phase: "rolled_back", undone: "by itself", reason: "n3: it died" });
  });

  it("takes back, first of all, the node that failed on the target", () => {
    const rollout = begun(["n1", "n2"], { rollback: { automatic: true } }).finish("n1");
    rollout.report("n2", "prepared").report("n2", "failed", { present: target });
    expect(rollout.phases).to.equal("n1=succeeded n2=rolling_back");
  });

  it("takes back a node that failed while the target waits for its next boot", () => {
    const waits = { present: old, lasting: target };
    const rollout = begun(["n1"], { healthGates: [{ name: "web", command: "curl" }] });
    rollout.report("n1", "prepared").report("n1", "activated", waits).answer("n1", "gate web", false, "503");
    // It has heard that it is given up.
    rollout.report("n1", "activated", waits);
    expect([rollout.phases, rollout.progress.phase]).to.deep.equal(["n1=failed", "failed"]);
    expect(rollout.wish("rollback").phases).to.equal("n1=rolling_back");
    expect(rollout.report("n1", "rolled_back", { present: old }).progress.phase).to.equal("rolled_back");
  });

  it("of a gate takes all back only when the manifest says that too", () => {
    for (const onHealthGateFailure of [true, false]) {
      const rollout = begun(["n1"], { rollback: { automatic: true, onHealthGateFailure } });
      rollout.report("n1", "prepared").report("n1", "activated", { present: target });
      expect(rollout.progress.phase).to.equal("succeeded");
      const ill = begun(["n1"], {
        rollback: { automatic: true, onHealthGateFailure },
        healthGates: [{ name: "web", command: "curl" }],
      });
      ill.finish("n1").answer("n1", "gate web", false, "503");
      expect(ill.progress.phase, String(onHealthGateFailure)).to.equal(onHealthGateFailure ? "rolling_back" : "failed");
    }
  });
});

describe("cancel", () => {
  it("ends what is not begun", () => {
    const rollout = new SteppedRollout({ nodes: ["n1"], spec: { approvalPolicy: "manual" } }).settle().wish("cancel");
    expect(rollout.progress).to.deep.include({ phase: "cancelled", reason: "cancelled" });
    expect(rollout.set({ isApproved: true }).progress.phase).to.equal("cancelled");
  });

  it("of another generation means nothing", () => {
    expect(begun(["n1"]).wish("cancel", { generation: 2 }).phases).to.equal("n1=preparing");
  });

  it("never interrupts an activation, nor what comes behind it", () => {
    const gate = { healthGates: [{ name: "web", command: "curl" }] };
    const rollout = begun(["n1", "n2", "n3"], { ...two, ...gate })
      .report("n1", "prepared")
      .wish("cancel");
    expect(rollout.phases).to.equal("n1=activating n2=cancelled n3=cancelled");
    rollout.report("n1", "rebooting");
    expect(rollout.phases).to.equal("n1=rebooting n2=cancelled n3=cancelled");
    rollout.report("n1", "activated");
    expect(rollout.phases).to.equal("n1=verifying n2=cancelled n3=cancelled");
    expect(rollout.progress.phase).to.equal("rolling_out");
    rollout.answer("n1", "gate web", true);
    expect(rollout.progress.phase).to.equal("cancelled");
  });

  it("remembers who was being drained", () => {
    const rollout = begun(["n1"], { drain: { enabled: true, command: "drain" } }).report("n1", "prepared");
    expect(rollout.phases).to.equal("n1=draining");
    expect(rollout.wish("cancel").row("n1")).to.deep.include({ phase: "cancelled", drained: true });
  });
});

describe("a rollback", () => {
  it("of a finished rollout takes every node back, the last one first", () => {
    const rollout = begun(["n1", "n2", "n3"], two);
    for (const id of ["n1", "n2", "n3"]) rollout.finish(id);
    rollout.wish("rollback");
    expect(rollout.phases).to.equal("n1=succeeded n2=rolling_back n3=rolling_back");
    rollout.report("n3", "rolled_back");
    expect(rollout.phases).to.equal("n1=rolling_back n2=rolling_back n3=rolled_back");
    rollout.report("n2", "rolled_back").report("n1", "rolled_back");
    expect(rollout.progress).to.deep.include({ phase: "rolled_back", undone: "2026-01-01T00:00:00Z" });
  });

  it("takes one node back at a time where the strategy says so, however many may be down", () => {
    const rollout = begun(["n1", "n2"], { strategy: { maxUnavailable: 2 } })
      .finish("n1")
      .finish("n2")
      .wish("rollback");
    expect(rollout.phases).to.equal("n1=succeeded n2=rolling_back");
  });

  it("of a cancelled one takes back those that were done", () => {
    const rollout = begun(["n1", "n2"]).finish("n1").wish("cancel");
    expect(rollout.progress.phase).to.equal("cancelled");
    rollout.wish("rollback");
    expect(rollout.phases).to.equal("n1=rolling_back n2=cancelled");
    expect(rollout.report("n1", "rolled_back").progress.phase).to.equal("rolled_back");
  });

  it("in the middle waits for what is under way, then takes that back too", () => {
    const rollout = begun(["n1", "n2"]).finish("n1").report("n2", "prepared").wish("rollback");
    expect(rollout.phases).to.equal("n1=succeeded n2=activating");
    rollout.report("n2", "activated");
    expect(rollout.phases).to.equal("n1=succeeded n2=rolling_back");
    rollout.report("n2", "rolled_back").report("n1", "rolled_back");
    expect(rollout.progress.phase).to.equal("rolled_back");
  });

  it("keeps to how many may be down, unless it is to be now", () => {
    const rollout = begun(["n1", "n2"]).finish("n1").finish("n2").node("n1", { isReady: false }).wish("rollback");
    expect(rollout.phases).to.equal("n1=succeeded n2=succeeded");
    expect(rollout.progress.waits).to.equal("n1: down or under way, and 1 may be");
    expect(rollout.wish("rollback", { now: true }).phases).to.equal("n1=succeeded n2=rolling_back");
  });

  it("leaves a node out that is not approved, names it in the end, and takes it back when it is asked again", () => {
    const rollout = begun(["n1", "n2", "n3"], two);
    for (const id of ["n1", "n2", "n3"]) rollout.finish(id);
    rollout.node("n2", { isApproved: false, isReady: false }).wish("rollback");
    expect(rollout.phases).to.equal("n1=rolling_back n2=succeeded n3=rolling_back");
    rollout.report("n3", "rolled_back").report("n1", "rolled_back");
    const reason = "not taken back: n2, which is not approved";
    expect(rollout.progress).to.deep.include({ phase: "failed", reason });
    expect(rollout.phases).to.equal("n1=rolled_back n2=succeeded n3=rolled_back");
    rollout.node("n2", { isApproved: true, isReady: true });
    expect(rollout.progress.phase).to.equal("failed");
    rollout.wish("rollback", { at: "2026-01-02T00:00:00Z" }).report("n2", "rolled_back");
    expect(rollout.progress.phase).to.equal("rolled_back");
  });

  it("names one that lost its approval while it could not be taken back", () => {
    const rollout = begun(["n1"]).finish("n1").wish("rollback").node("n1", { isApproved: false, isReady: false });
    expect(rollout.after(661).phases).to.equal("n1=failed");
    expect(rollout.progress).to.deep.include({ phase: "failed", reason: "not taken back: n1, which is not approved" });
  });

  it("is not held up by one that is not approved, though only one may be down", () => {
    const rollout = begun(["n1", "n2", "n3"], { rollback: { automatic: true } })
      .finish("n1")
      .finish("n2");
    rollout.node("n1", { isApproved: false, isReady: false });
    rollout.report("n3", "failed", { failure: { kind: "build", message: "x" } });
    expect(rollout.phases).to.equal("n1=succeeded n2=rolling_back n3=failed");
    rollout.report("n2", "rolled_back");
    expect(rollout.progress).to.deep.include({ phase: "failed", reason: "not taken back: n1, which is not approved" });
  });

  it("waits for one that is not approved while an order has it down, unless it is to be now", () => {
    const rollout = begun(["n1", "n2"]).finish("n1").finish("n2").wish("rollback");
    expect(rollout.phases).to.equal("n1=succeeded n2=rolling_back");
    rollout.node("n2", { isApproved: false, isReady: false });
    expect(rollout.phases).to.equal("n1=succeeded n2=rolling_back");
    rollout.after(661);
    expect(rollout.phases).to.equal("n1=rolling_back n2=failed");
  });

  it("keeps to one controller at a time, also beside one that is not approved and may be under way", () => {
    const cluster = ["c1", "c2", "c3"].map((id) => aNode(id, { isController: true }));
    const rollout = begun(cluster, { strategy: { type: "batch", maxUnavailable: 3 } });
    for (const id of ["c2", "c3", "c1"]) rollout.finish(id);
    rollout.node("c2", { isApproved: false, isReady: false }).takeOver("c3").wish("rollback").confirm("c1", "c3");
    expect(rollout.phases).to.equal("c1=succeeded c2=succeeded c3=succeeded");
    expect(rollout.progress.waits).to.equal("c2, a controller that is, or may be, under way");
  });

  it("says which nodes it could not take back, and tries them again when it is asked again", () => {
    const rollout = begun(["n1", "n2"]).finish("n1").finish("n2").wish("rollback");
    rollout.report("n2", "failed", { present: target, failure: { kind: "service", message: "no" } });
    rollout.report("n2", "failed", { present: target });
    rollout.report("n1", "rolled_back");
    expect(rollout.progress).to.deep.include({ phase: "failed", reason: "not taken back: n2" });
    expect(rollout.after(60).phases).to.equal("n1=rolled_back n2=failed");
    rollout.wish("rollback", { at: "2026-01-02T00:00:00Z" });
    expect(rollout.phases).to.equal("n1=rolled_back n2=rolling_back");
    expect(rollout.report("n2", "rolled_back").progress.phase).to.equal("rolled_back");
    expect(rollout.progress).to.not.have.property("reason");
  });

  it("takes controllers back one at a time also when it is to be now, and waits for none that may be under way then", () => {
    const cluster = ["c1", "c2", "c3"].map((id) => aNode(id, { isController: true }));
    const rollout = begun(cluster, { strategy: { type: "batch", maxUnavailable: 3 } });
    for (const id of ["c2", "c3", "c1"]) rollout.finish(id);
    rollout.wish("rollback", { now: true });
    expect(rollout.phases).to.equal("c1=rolling_back c2=succeeded c3=succeeded");
    rollout.report("c1", "rolled_back");
    expect(rollout.phases).to.equal("c1=rolled_back c2=succeeded c3=rolling_back");
    // It does not say what came of it, and may be under way for ever.
    rollout.after(661);
    expect(rollout.phases).to.equal("c1=rolled_back c2=rolling_back c3=failed");
  });

  it("waits for another update that has nodes of it, whoever asks", () => {
    const rollout = begun(["n1", "n2"]).finish("n1").finish("n2").set({ other: "v" }).wish("rollback");
    expect(rollout.phases).to.equal("n1=succeeded n2=succeeded");
    expect(rollout.progress).to.deep.include({ phase: "succeeded", waits: "the update “v”" });
    const { other: _, ...alone } = rollout.view;
    rollout.view = alone;
    expect(rollout.settle().phases).to.equal("n1=succeeded n2=rolling_back");
    expect(rollout.progress).to.not.have.property("waits");
  });
});

describe("a new owner", () => {
  it("asks each node first, and starts none while one has not confirmed it", () => {
    const rollout = begun(["n1", "n2"]).report("n1", "prepared").takeOver("c2");
    expect(rollout.phases).to.equal("n1=preflight n2=preflight");
    expect(rollout.row("n1")).to.deep.include({ epoch: 2, owner: "c2" });
    // It was prepared, so it is started as any other, but has less to do.
    rollout.report("n1", "prepared");
    expect(rollout.phases).to.equal("n1=pending n2=preflight");
    rollout.confirm("n2");
    expect(rollout.phases).to.equal("n1=preparing n2=pending");
    expect(rollout.finish("n1").finish("n2").progress.phase).to.equal("succeeded");
  });

  it("goes on with an activation that is under way, and knows how to take it back", () => {
    const rollout = begun(["n1", "n2"]).report("n1", "prepared").takeOver("c2").confirm("n2");
    rollout.report("n1", "activating");
    expect(rollout.phases).to.equal("n1=activating n2=pending");
    rollout.report("n1", "activated", { previous: old });
    expect(rollout.phases).to.equal("n1=succeeded n2=preparing");
    rollout.finish("n2").wish("rollback");
    expect(rollout.written.at(-1)).to.deep.equal(["n2", "rolling_back"]);
  });

  it("that knew less believes the nodes", () => {
    const rollout = begun(["n1", "n2", "n3"]);
    const { progress, rows } = rollout.view;
    rollout.finish("n1").finish("n2");
    rollout.takeOver("c2", { progress, rows, reports: new Map() });
    expect(rollout.phases).to.equal("n1=preflight n2=preflight n3=preflight");
    rollout.report("n1", "activated").report("n2", "activated").confirm("n3");
    // Each is taken through what comes behind an activation, which it has done.
    rollout.report("n1", "activated").report("n2", "activated");
    expect(rollout.phases).to.equal("n1=succeeded n2=succeeded n3=preparing");
    expect(rollout.progress.started).to.deep.equal(["n1", "n2", "n3"]);
  });

  it("that did not hear of a rollback goes on with that", () => {
    const rollout = begun(["n1", "n2"]).finish("n1").finish("n2");
    const { progress, rows } = rollout.view;
    rollout.takeOver("c2", { progress, rows, reports: new Map() });
    expect(rollout.progress.phase).to.equal("succeeded");
    rollout.report("n1", "activated").report("n2", "rolled_back");
    expect(rollout.phases).to.equal("n1=rolling_back n2=rolled_back");
  });

  it("that did not hear of the beginning asks all nodes that are meant", () => {
    const rollout = begun(["n1", "n2"]).finish("n1");
    rollout.takeOver("c2", { progress: undefined, rows: new Map(), reports: new Map() });
    expect(rollout.phases).to.equal("n1=preflight n2=preflight");
    rollout.report("n1", "activated").report("n1", "activated").confirm("n2");
    expect(rollout.phases).to.equal("n1=succeeded n2=preparing");
  });

  it("goes on where another's record came over its own", () => {
    const rollout = begun(["n1", "n2"]).report("n1", "prepared");
    const stale = { ...rollout.row("n1"), owner: "c9", seq: 1, phase: "pending" as const };
    const known = rollout.row("n1").seq;
    rollout.report("n1", "activating").set({ rows: new Map([...rollout.view.rows, ["n1", stale]]) });
    expect(rollout.row("n1")).to.deep.include({ owner: "c1", phase: "activating" });
    expect(rollout.row("n1").seq).to.be.greaterThan(known);
    const { progress } = rollout;
    rollout.set({ progress: { ...progress, owner: "c9", phase: "pending", waves: [], started: [] } });
    expect(rollout.progress).to.deep.include({ owner: "c1", phase: "rolling_out" });
    expect(rollout.phases).to.equal("n1=activating n2=pending");
    expect(rollout.progress.waves.flat().toSorted()).to.deep.equal(["n1", "n2"]);
  });

  it("that is asked to stop gives silent nodes their time, then calls them off, and still hears them later", () => {
    const rollout = begun(["n1", "n2"]).takeOver("c2").confirm("n1").wish("cancel");
    expect(rollout.phases).to.equal("n1=cancelled n2=preflight");
    rollout.after(661);
    expect(rollout.phases).to.equal("n1=cancelled n2=cancelled");
    expect(rollout.progress.phase).to.equal("cancelled");
    rollout.report("n2", "activated").report("n2", "activated");
    expect(rollout.phases).to.equal("n1=cancelled n2=succeeded");
    expect(rollout.wish("rollback").phases).to.equal("n1=cancelled n2=rolling_back");
  });

  it("does not end while a node obeys another owner of the same epoch: that takes a takeover", () => {
    const rollout = begun(["n1", "n2"]).takeOver("c2").confirm("n1").wish("cancel");
    const fence = { name: "u", epoch: 2, owner: "c9", generation: 1, seq: 4 };
    rollout.report("n2", "activated", { fence }).after(10_000);
    expect(rollout.phases).to.equal("n1=cancelled n2=preflight");
    expect(rollout.progress).to.deep.include({
      phase: "rolling_out",
      waits: "n2, which obeys c9, so one of them has to take over",
    });
    rollout.takeOver("c2").report("n2", "activated").report("n2", "activated");
    expect(rollout.phases).to.equal("n1=cancelled n2=succeeded");
    expect(rollout.progress.phase).to.equal("cancelled");
  });

  it("asks again for a node that it called off, when another owner of the same epoch has brought it elsewhere", () => {
    const rollout = begun(["n1"]).takeOver("c2").wish("rollback").after(661);
    expect(rollout.phases).to.equal("n1=cancelled");
    expect(rollout.progress.phase).to.equal("rolled_back");
    const fence = { name: "u", epoch: 2, owner: "c9", generation: 1, seq: 4 };
    rollout.report("n1", "activated", { fence, present: target, previous: old });
    expect(rollout.phases).to.equal("n1=preflight");
    expect(rollout.progress).to.deep.include({
      phase: "rolled_back",
      waits: "n1, which obeys c9, so one of them has to take over",
    });
    const there = { present: target, previous: old };
    rollout.takeOver("c2").report("n1", "activated", there).report("n1", "activated", there);
    expect(rollout.phases).to.equal("n1=rolling_back");
    expect(rollout.progress).to.not.have.property("waits");
  });
});

describe("a node that was drained and does not succeed", () => {
  const drain = { enabled: true, command: "drain", after: { command: "undrain" } };
  const drained = (spec: object = {}): SteppedRollout => {
    const rollout = begun(["n1", "n2"], { drain, ...spec })
      .report("n1", "prepared")
      .answer("n1", "drain", true);
    expect(rollout.phases).to.equal("n1=activating n2=pending");
    return rollout;
  };
  const hookOf = (rollout: SteppedRollout): string | undefined =>
    lookAtHooks(rollout.view, "n1", rollout.row("n1")).next;
  const failure = { kind: "service", message: "it died" } as const;

  it("gets its work back when it went back by itself, also when all is taken back", () => {
    for (const automatic of [false, true]) {
      const rollout = drained({ rollback: { automatic } }).report("n1", "failed", { failure });
      const ended = { phase: automatic ? "rolled_back" : "failed", reason: "n1: it died" };
      expect(rollout.progress).to.deep.include(ended);
      expect(hookOf(rollout)).to.equal("undrain");
      expect(reasonOf(rollout.view)).to.equal("n1: it died; n1 is drained until the bastion lets work come back");
      rollout.answer("n1", "undrain", true);
      expect(rollout.row("n1")).to.deep.include({ phase: "failed", failure }).and.not.have.property("drained");
      expect(hookOf(rollout)).to.equal(undefined);
      expect(rollout.progress).to.deep.include(ended);
      expect(reasonOf(rollout.view)).to.equal("n1: it died");
    }
  });

  it("gets its work back when a former owner may have drained it, unknown here: silent, or prepared by its own word", () => {
    const unknown = (): SteppedRollout =>
      begun(["n1", "n2"], { drain }).takeOver("c2", { progress: undefined, rows: new Map(), reports: new Map() });
    const silent = unknown().wish("cancel").after(661);
    expect(silent.row("n1")).to.deep.include({ phase: "cancelled", drained: true });
    const prepared = unknown().report("n1", "prepared").wish("cancel");
    expect(prepared.row("n1")).to.deep.include({ phase: "cancelled", drained: true });
    expect(hookOf(prepared)).to.equal("undrain");
    expect(unknown().confirm("n1").wish("cancel").row("n1")).to.not.have.property("drained");
  });

  it("stays drained until it says that it went back, and the reason tells so", () => {
    const rollout = drained().after(661);
    expect(rollout.row("n1").failure?.kind).to.equal("unreachable");
    expect(hookOf(rollout)).to.equal(undefined);
    expect(reasonOf(rollout.view)).to.match(/; n1 stays drained: it has not said that it went back$/);
    rollout.report("n1", "failed", { failure });
    expect(hookOf(rollout)).to.equal("undrain");
    const onTarget = drained().report("n1", "failed", { failure, present: target });
    expect(hookOf(onTarget)).to.equal(undefined);
    expect(hookOf(drained().report("n1", "failed", { failure, present: old, lasting: target }))).to.equal(undefined);
    expect(reasonOf(onTarget.view)).to.equal("n1: it died; n1 stays drained: it runs what failed");
  });

  it("stays drained when its work could not come back, and the reason tells why", () => {
    const rollout = drained().report("n1", "failed", { failure }).answer("n1", "undrain", false, "no quorum");
    expect(rollout.row("n1")).to.deep.include({ phase: "failed", drained: true });
    expect(reasonOf(rollout.view)).to.equal("n1: it died; n1 stays drained: undrain: no quorum");
  });

  it("gets its work back when it was drained in part", () => {
    const rollout = begun(["n1"], { drain }).report("n1", "prepared").answer("n1", "drain", false, "a pod stays");
    expect(rollout.progress).to.deep.include({ phase: "failed", reason: "n1: a pod stays" });
    rollout.report("n1", "prepared");
    expect(hookOf(rollout)).to.equal("undrain");
  });

  it("gets its work back when it was called off, and once only", () => {
    const rollout = begun(["n1"], { drain }).report("n1", "prepared").wish("cancel");
    expect(hookOf(rollout)).to.equal("undrain");
    rollout.answer("n1", "undrain", true);
    expect(rollout.row("n1")).to.not.have.property("drained");
    expect(rollout.phases).to.equal("n1=cancelled");
  });

  it("gets its work back from a new owner that did not know of the drain", () => {
    const rollout = begun(["n1", "n2"], { drain });
    const { progress, rows } = rollout.view;
    rollout.report("n1", "prepared").answer("n1", "drain", true).report("n1", "failed", { failure });
    rollout.takeOver("c2", { progress, rows, reports: new Map(), answers: new Map() });
    rollout.report("n1", "failed", { failure, previous: old });
    expect(rollout.row("n1").phase).to.equal("failed");
    expect(hookOf(rollout)).to.equal("undrain");
  });

  it("is remembered by a new owner of what was being drained", () => {
    const rollout = begun(["n1"], { drain }).report("n1", "prepared").takeOver("c2");
    expect(rollout.row("n1")).to.include({ phase: "preflight", drained: true });
  });

  it("is not asked about again when it had its work back before it was taken back", () => {
    const rollout = drained().report("n1", "activated").answer("n1", "undrain", true).wish("rollback");
    expect(rollout.phases).to.equal("n1=rolling_back n2=cancelled");
    rollout.report("n1", "rolled_back");
    expect(hookOf(rollout)).to.equal(undefined);
  });
});
