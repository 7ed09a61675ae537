import { expect } from "chai";
import { actionNames, findAction } from "#actions/registry.ts";
import { paramsFor } from "#cli/orchestrate/run-update.ts";
import { openCatalogue } from "#engine/orchestrate/catalogue.ts";
import type { PlannedStage, RunPlan } from "#engine/orchestrate/plan.ts";
import { preparePlan } from "#engine/orchestrate/prepare.ts";
import { registry } from "#engine/modules/registry.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { UpdateSpec } from "#rollout/spec.ts";
import { withoutWave } from "#tui/work-item.ts";
import { fakeNodes } from "#support/fake-session.ts";
import { problemsIn, problemsOfRejection } from "#support/problems.ts";
import { makeProject } from "#support/project.ts";
import { nodeEntry, rosterOf, runDependencies, runRequest } from "#support/runs.ts";
import { bundleOf } from "#support/update-world.ts";

const nodes = [
  nodeEntry("c1", { roles: ["controller"] }),
  nodeEntry("w1"),
  nodeEntry("w2", { labels: { tier: "ssd" } }),
  nodeEntry("w3", { dc: "DC2" }),
];
const two = { selector: { nodeIds: ["w1", "w2"] } };
const state = "params: { to: { type: string } }\nsteps:\n  - id: drain\n    command.run: { cmd: ./drain.sh }\n";

function paramsOf(spec: object = {}, isBack = false) {
  const whole = UpdateSpec.parse({ target: { version: "0.2.0" }, selector: { allNodes: true }, ...spec });
  const bundle = whole.target.flakeRef === undefined ? bundleOf("0.2.0") : undefined;
  const file = bundle && !isBack && { file: { file: "/b.gz", sha256: bundle.sha256, size: bundle.size } };
  return { ...paramsFor({ name: "u1", spec: whole }, nodes, { bundle, isBack }), ...file };
}

/** The plan of a run: the shipped orchestration with this manifest's parameters. */
async function plan(spec: object = {}, isBack = false): Promise<RunPlan> {
  const project = await makeProject({ "states/drained.yaml": state });
  try {
    const fields = { project: project.path, shipped: shippedRoot(), actions: findAction, actionNames };
    const deps = runDependencies(fakeNodes({}), [], fields);
    const roster = rosterOf(...nodes);
    const run = { id: "r1", challenge: "c", time: "2026-11-21T06:57:24Z", revision: "f128abb" };
    const what = { kind: "orchestration", name: isBack ? "update_rollback" : "update", title: "update u1" } as const;
    const request = runRequest({ what, params: paramsOf(spec, isBack) });
    return await preparePlan({ request, deps, roster, catalogue: openCatalogue(deps, { roster, run }, registry), run });
  } finally {
    await project.remove();
  }
}

/** Each stage as `id: nodes`. */
const outline = (stages: readonly PlannedStage[] = []): string[] =>
  stages.map(({ id, nodes: names = [] }) => `${id}: ${names.join(" ")}`.trim());

describe("an update over SSH", () => {
  it("updates workers before controllers, one node at a time", async () => {
    const { title, stages } = await plan();
    expect(title).to.equal("update u1");
    expect(outline(stages)).to.deep.equal([
      "sign:",
      "look: c1 w1 w2 w3",
      "fence: c1 w1 w2 w3",
      "begin:",
      ...["w1", "w2", "w3", "c1"].flatMap((name, index) =>
        ["prepare", "activate", "hold", "ready"].map((id) => `${id}${index === 0 ? "" : `@${index + 1}`}: ${name}`),
      ),
    ]);
  });

  it("updates batches with at most maxUnavailable nodes down, and stops at the first failure", async () => {
    const strategy = { type: "batch", batchSize: 3, maxUnavailable: 2 };
    const { stages } = await plan({ strategy, rollback: { automatic: true } });
    const first = stages.find(({ id }) => id === "activate");
    expect(first).to.deep.include({ nodes: ["w1", "w2", "w3"], pace: { maxUnavailable: 2, maxFailures: 0 } });
    expect(stages.at(-1)?.nodes).to.deep.equal(["c1"]);
    const back = (await plan({ strategy }, true)).stages.at(-1);
    expect(back).to.deep.include({ id: "back@2", nodes: ["w3", "w2", "w1"], pace: { concurrency: 2 } });
  });

  it("skips nodes that run the target, and confirms a version only over a new connection", async () => {
    const waves = (await plan({ selector: { nodeIds: ["w1"] } })).stages.slice(4);
    const condition = "{{ne stages.look.updater.facts.runtime params.target}}";
    expect(waves.map((stage) => stage.condition)).to.deep.equal(waves.map(() => condition));
    expect(waves.filter(({ reconnect }) => reconnect === true).map(({ id }) => id)).to.deep.equal(["hold"]);
  });

  it("asks for promotion after the canaries, or lets them soak", async () => {
    const strategy = { type: "canary", maxUnavailable: 2, canary: { labels: ["tier=ssd"] } };
    const asks = (await plan({ strategy })).stages;
    expect(outline(asks).slice(4, 10)).to.deep.equal([
      "prepare: w2",
      "activate: w2",
      "hold: w2",
      "ready: w2",
      "promote:",
      "prepare@2: w1 w3",
    ]);
    expect(asks.find(({ id }) => id === "promote")?.title).to.match(/^Promotion of w2/);
    const soaks = (await plan({ strategy: { ...strategy, canary: { labels: ["tier=ssd"], soakSeconds: 7200 } } }))
      .stages;
    expect(outline(soaks).includes("promote:")).to.equal(false);
    expect(soaks.find(({ id }) => id === "soak")).to.include({ timeout: 7260 });
  });

  it("refuses a canary that the selector leaves out, but not in a rollback", async () => {
    const spec = { ...two, strategy: { type: "canary", canary: { nodeIds: ["w3"] } } };
    expect(problemsIn(() => paramsOf(spec))).to.deep.equal([
      "“u1”: strategy.canary.nodeIds names “w3”, which the selector leaves out: select it, too, or name another canary [UPDATE_INVALID]",
    ]);
    expect(outline((await plan(spec, true)).stages)).to.include("look: w1 w2");
  });

  it("finishes a datacenter before the next with per-dc", async () => {
    const { stages } = await plan({ strategy: { type: "per-dc", batchSize: 2, maxUnavailable: 2 } });
    expect(outline(stages).filter((line) => line.startsWith("hold"))).to.deep.equal([
      "hold: w1 w2",
      "hold@2: c1",
      "hold@3: w3",
    ]);
  });

  it("runs window, drain, activation, gates and undrain of a node in order", async () => {
    const { stages } = await plan({
      selector: { nodeIds: ["w1"] },
      window: { from: "22:00", to: "04:00" },
      drain: { enabled: true, state: "drained", params: { to: "w2" }, after: { command: "back" } },
      healthGates: [
        { name: "on the node", nodeCommand: "true" },
        { name: "from here", command: "ask w1" },
        { name: "by a state", state: "drained" },
        { name: "once more", command: "ask" },
      ],
    });
    const ids = ["window", "prepare", "drain-state", "activate", "hold", "ready", "gate-state", "gate", "gate-2"];
    expect(outline(stages).slice(4)).to.deep.equal([...ids, "undrain"].map((id) => `${id}: w1`));
    expect(stages.filter(({ id }) => id.startsWith("gate")).map(({ title }) => title)).to.deep.equal([
      "Gate by a state",
      "Gate from here",
      "Gate once more",
    ]);
    const gate = stages.find(({ id }) => id === "gate");
    const args = gate?.task.kind === "action" ? gate.task.args({ stages: {} }) : undefined;
    expect(args).to.deep.equal({ command: "ask w1", within: 60, repeat: true });
  });

  it("with automatic rollback rolls back in reverse order, and a node with a failed gate at once", async () => {
    expect((await plan()).onFailure).to.equal(undefined);
    const drain = { enabled: true, command: "drain", after: { command: "undrain" } };
    const spec = { ...two, drain, healthGates: [{ name: "a", command: "true" }] };
    const ownOf = ({ stages }: RunPlan, wanted: string): readonly string[] | undefined =>
      stages.find(({ id }) => id === wanted)?.onFailure.map(({ id }) => id);
    const automatic = await plan({ ...spec, rollback: { automatic: true } });
    expect(outline(automatic.onFailure)).to.deep.equal([
      "verdict:",
      "back: w2",
      "undrain-back: w2",
      "back@2: w1",
      "undrain-back@2: w1",
    ]);
    expect(ownOf(automatic, "gate@2")).to.deep.equal(["back-gate@2", "undrain-gate@2"]);
    expect(ownOf(automatic, "hold")).to.deep.equal([]);
    const kept = await plan({ ...spec, rollback: { automatic: true, onHealthGateFailure: false } });
    expect([ownOf(kept, "gate@2"), ownOf(kept, "undrain")]).to.deep.equal([[], ["back-undrain"]]);
  });

  it("names the stages of waves as other orchestrations do", async () => {
    const { stages } = await plan({ ...two, drain: { enabled: true, command: "drain" } });
    const drains = stages.filter(({ title }) => title.startsWith("Drain"));
    expect(drains.map(({ id }) => [id, withoutWave(id)])).to.deep.equal([
      ["drain", "drain"],
      ["drain@2", "drain"],
    ]);
  });

  it("rolls all nodes back on request, the last first", async () =>
    expect(outline((await plan({}, true)).stages)).to.deep.equal([
      "sign:",
      "look: c1 w1 w2 w3",
      "back: c1",
      "back@2: w3",
      "back@3: w2",
      "back@4: w1",
    ]));

  it("refuses unknown nodes and limits above the number of selected nodes, but not in a rollback", async () => {
    const spec = { selector: { nodeIds: ["w1", "w33"] }, strategy: { type: "batch", maxUnavailable: 7, batchSize: 3 } };
    expect(problemsIn(() => paramsOf(spec))).to.deep.equal([
      "“u1”: no node of the roster is “w33”, which selector.nodeIds names [UPDATE_INVALID]",
      "“u1”: maxUnavailable is 7, and 1 nodes are meant [UPDATE_INVALID]",
      "“u1”: batchSize is 3, and 1 nodes are meant [UPDATE_INVALID]",
    ]);
    expect(outline((await plan(spec, true)).stages).at(-1)).to.equal("back: w1");
    expect(problemsIn(() => paramsOf({ selector: { labels: ["tier=tape"] } })).join()).to.contain("[TARGET_EMPTY]");
  });

  it("has nodes build NixOS systems, with a longer limit if they may reboot", async () => {
    const target = { flakeRef: "github:example/systems/main", flakeRev: "0123456789abcdef0123456789abcdef01234567" };
    const of = (activation: object) => paramsOf({ target, activation, selector: { nodeIds: ["w1"] } });
    expect(of({})).to.include({
      target: "github:example/systems/0123456789abcdef0123456789abcdef01234567",
      boots: true,
      holdLimit: 900,
    });
    expect(of({})).not.to.have.any.keys("version", "bundle");
    for (const activation of [{ mode: "test" }, { mode: "boot", rebootPolicy: "never" }])
      expect(of(activation)).to.include({ boots: false, holdLimit: 600 });
    const { stages } = await plan({ target, selector: { nodeIds: ["w1"] } });
    expect(outline(stages).slice(4)).to.deep.equal(["prepare: w1", "activate: w1", "hold: w1", "ready: w1"]);
  });

  it("fails without a manifest, and names the command that takes a manifest", async () => {
    const deps = runDependencies(fakeNodes({}), [], { shipped: shippedRoot(), actions: findAction, actionNames });
    const roster = rosterOf(...nodes);
    const request = runRequest({ what: { kind: "orchestration", name: "update" } });
    const catalogue = openCatalogue(deps, { roster, run: {} }, registry);
    expect((await problemsOfRejection(preparePlan({ request, deps, roster, catalogue, run: {} }))).join()).to.contain(
      "kcore orchestrate update -f rollout.yaml",
    );
  });
});
