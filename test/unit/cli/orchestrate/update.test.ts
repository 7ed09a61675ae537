import { expect } from "chai";
import { parseSource } from "#engine/yaml/parse.ts";
import { readOrchestration } from "#engine/orchestrate/load-orchestration.ts";
import { UpdateSpec } from "#rollout/spec.ts";
import { withoutWave } from "#tui/work-item.ts";
import { problemsIn } from "#support/problems.ts";
import { codeOf } from "#support/rejection.ts";
import { nodeEntry } from "#support/runs.ts";
import { bundleOf } from "#support/update-world.ts";
import { composeUpdate, type Composed } from "../../../../src/cli/orchestrate/update/compose.ts";

const nodes = [
  nodeEntry("c1", { roles: ["controller"] }),
  nodeEntry("w1"),
  nodeEntry("w2", { labels: { tier: "ssd" } }),
  nodeEntry("w3", { dc: "DC2" }),
];

function compose(spec: object = {}, isBack = false): Composed {
  const whole = UpdateSpec.parse({ target: { version: "0.2.0" }, selector: { allNodes: true }, ...spec });
  const isRuntime = whole.target.flakeRef === undefined;
  const runtime = isRuntime ? { bundle: bundleOf("0.2.0"), file: "/b.gz" } : undefined;
  return composeUpdate({ name: "u1", spec: whole, runtime, nodes, isBack });
}

type Stage = Readonly<Record<string, unknown>> & { readonly id: string; readonly onFailure?: readonly Stage[] };
interface Read {
  readonly stages: readonly Stage[];
  readonly onFailure?: readonly Stage[];
}

function read({ text }: Composed): Read {
  const none = (): never => {
    throw new Error("nothing is included");
  };
  readOrchestration("u1", "composed", parseSource("composed", text), none);
  return JSON.parse(text) as Read;
}

/** `id: nodes` of the stages that work on nodes. */
function outline(stages: readonly Stage[] = []): string[] {
  return stages.map(({ id, on, each }) => `${id}: ${((on ?? each ?? []) as readonly string[]).join(" ")}`.trim());
}

describe("an update over SSH", () => {
  it("goes through the nodes of the roster as controllers would: workers first, one at a time", () =>
    expect(outline(read(compose()).stages)).to.deep.equal([
      "sign:",
      "look: c1 w1 w2 w3",
      "fence: c1 w1 w2 w3",
      "begin:",
      ...["w1", "w2", "w3", "c1"].flatMap((name, index) =>
        ["prepare", "activate", "hold", "ready"].map((id) => `${id}${index === 0 ? "" : `@${index + 1}`}: ${name}`),
      ),
    ]));

  it("takes a batch at a time, no more of it than may be down, and stops at the first failure", () => {
    const { stages } = read(compose({ strategy: { type: "batch", batchSize: 3, maxUnavailable: 2 } }));
    const [first] = stages.filter(({ id }) => id === "activate");
    expect([first?.["on"], first?.["maxUnavailable"], first?.["maxFailures"]]).to.deep.equal([
      ["w1", "w2", "w3"],
      2,
      0,
    ]);
    expect(stages.at(-1)?.["each"]).to.deep.equal(["c1"]);
  });

  it("touches no node that runs the target, and keeps what came by a new connection alone", () => {
    const { stages } = read(compose({ selector: { nodeIds: ["w1"] } }));
    const when = "{{ne stages.look.updater.facts.runtime params.target}}";
    const waves = stages.slice(4);
    expect(waves.map((stage) => stage["when"])).to.deep.equal(waves.map(() => when));
    expect(waves.filter(({ reconnect }) => reconnect === true).map(({ id }) => id)).to.deep.equal(["hold"]);
  });

  it("asks behind the canaries, or lets them soak", () => {
    const strategy = { type: "canary", maxUnavailable: 2, canary: { labels: ["tier=ssd"] } };
    const asks = read(compose({ strategy })).stages;
    expect(outline(asks).slice(4, 10)).to.deep.equal([
      "prepare: w2",
      "activate: w2",
      "hold: w2",
      "ready: w2",
      "promote:",
      "prepare@2: w1 w3",
    ]);
    expect(asks.find(({ id }) => id === "promote")?.["run"]).to.equal("confirm");
    const soaks = read(
      compose({ strategy: { ...strategy, canary: { labels: ["tier=ssd"], soakSeconds: 7200 } } }),
    ).stages;
    expect(soaks.find(({ id }) => id === "promote")).to.include({ run: "wait", for: 7200, timeout: 7260 });
  });

  it("tries no other node first than the canary that is named: one that is not selected is refused, unless it is taken back", () => {
    const spec = { selector: { nodeIds: ["w1", "w2"] }, strategy: { type: "canary", canary: { nodeIds: ["w3"] } } };
    expect(problemsIn(() => compose(spec))).to.deep.equal([
      "“u1”: strategy.canary.nodeIds names “w3”, which the selector leaves out: select it, too, or name another canary [UPDATE_INVALID]",
    ]);
    expect(outline(read(compose(spec, true)).stages)).to.include("look: w1 w2");
  });

  it("has a datacenter done before the next one", () => {
    const { stages } = read(compose({ strategy: { type: "per-dc", batchSize: 2, maxUnavailable: 2 } }));
    expect(outline(stages).filter((line) => line.startsWith("hold"))).to.deep.equal([
      "hold: w1 w2",
      "hold@2: c1",
      "hold@3: w3",
    ]);
  });

  it("waits for the window before each node, drains, asks gates of the bastion, and lets work come back", () => {
    const { stages } = read(
      compose({
        selector: { nodeIds: ["w1"] },
        window: { from: "22:00", to: "04:00" },
        drain: { enabled: true, state: "drained", params: { to: "w2" }, after: { command: "back" } },
        healthGates: [
          { name: "on the node", nodeCommand: "true" },
          { name: "from here", command: "ask" },
        ],
      }),
    );
    expect(outline(stages).slice(4)).to.deep.equal(
      ["window", "prepare", "drain", "activate", "hold", "ready", "gate2", "undrain"].map((id) => `${id}: w1`),
    );
  });

  it("holds nothing of the manifest that could be read as an expression", () => {
    const command = "echo {{node.name}}";
    const composed = compose({ healthGates: [{ name: "a", command }], drain: { enabled: true, command } });
    expect(composed.text).to.not.contain("echo");
    expect(composed.params["hooks"]).to.deep.include({ gate1: { params: {}, command } });
  });

  it("takes back in reverse order when that is wished for, and what fails at a gate where it is", () => {
    expect(read(compose()).onFailure).to.equal(undefined);
    const spec = {
      rollback: { automatic: true },
      healthGates: [{ name: "a", command: "true" }],
      selector: { nodeIds: ["w1", "w2"] },
    };
    const { stages, onFailure } = read(compose(spec));
    expect(outline(onFailure)).to.deep.equal(["verdict:", "back-all@2: w2", "back-all: w1"]);
    const ownOf = (id: string, all: readonly Stage[]): readonly string[] =>
      all.find((stage) => stage.id === id)?.onFailure?.map((stage) => stage.id) ?? [];
    expect(ownOf("gate1@2", stages)).to.deep.equal(["back-gate1@2"]);
    const kept = read(compose({ ...spec, rollback: { automatic: true, onHealthGateFailure: false } }));
    expect(ownOf("gate1@2", kept.stages)).to.deep.equal([]);
  });

  it("C17: names the stages of a wave as other orchestrations do", () => {
    const { stages } = read(
      compose({ drain: { enabled: true, command: "drain" }, selector: { nodeIds: ["w1", "w2"] } }),
    );
    const drains = stages.filter(({ title }) => String(title).startsWith("Drain"));
    expect(drains.map(({ id }) => [id, withoutWave(id)])).to.deep.equal([
      ["drain", "drain"],
      ["drain@2", "drain"],
    ]);
  });

  it("takes all back on request, the last ones first", () =>
    expect(outline(read(compose({}, true)).stages)).to.deep.equal([
      "sign:",
      "look: c1 w1 w2 w3",
      "back@4: c1",
      "back@3: w3",
      "back@2: w2",
      "back: w1",
    ]));

  it("takes back the nodes of a batch in reverse order too, as many at a time as may be down", () => {
    const spec = { strategy: { type: "batch", batchSize: 3, maxUnavailable: 2 } };
    const back = read(compose(spec, true)).stages.at(-1);
    expect(back).to.deep.include({ id: "back", on: ["w1", "w2", "w3"], order: "reverse", concurrency: 2 });
  });

  it("refuses names that the roster has not, and bounds above what is meant, unless it is taken back", () => {
    const spec = { selector: { nodeIds: ["w1", "w33"] }, strategy: { type: "batch", maxUnavailable: 7, batchSize: 3 } };
    expect(problemsIn(() => compose(spec))).to.deep.equal([
      "“u1”: no node of the roster is “w33”, which selector.nodeIds names [UPDATE_INVALID]",
      "“u1”: maxUnavailable is 7, and 1 nodes are meant [UPDATE_INVALID]",
      "“u1”: batchSize is 3, and 1 nodes are meant [UPDATE_INVALID]",
    ]);
    expect(outline(read(compose(spec, true)).stages).at(-1)).to.equal("back: w1");
  });

  it("has NixOS systems built by the nodes, and says whether they may boot for it", () => {
    const target = { flakeRef: "github:example/systems/main", flakeRev: "0123456789abcdef0123456789abcdef01234567" };
    const of = (activation: object) => {
      const { text, params } = compose({ target, activation, selector: { nodeIds: ["w1"] } });
      const stages = new Map(read({ text, params }).stages.map((stage) => [stage.id, stage]));
      const given = stages.get("activate")?.["with"] as { readonly boots: boolean; readonly system: string };
      return { params, stages, boots: given.boots, system: given.system };
    };
    const { params, stages, ...usual } = of({});
    expect(Object.keys(params)).to.have.members(["target", "spec", "hooks"]);
    expect(params["target"]).to.equal("github:example/systems/0123456789abcdef0123456789abcdef01234567");
    expect([stages.get("prepare")?.["apply"], stages.get("ready")?.["version"]]).to.deep.equal([
      "update/build",
      undefined,
    ]);
    expect(usual).to.deep.equal({ boots: true, system: "/run/current-system" });
    expect(of({ mode: "test" }).boots).to.equal(false);
    expect(of({ mode: "boot", rebootPolicy: "never" })).to.include({
      boots: false,
      system: "/nix/var/nix/profiles/system",
    });
  });

  it("tells a selector that means nobody", async () => {
    const composing = Promise.resolve().then(() => compose({ selector: { labels: ["tier=tape"] } }));
    expect(await codeOf(composing)).to.equal("TARGET_EMPTY");
  });
});
