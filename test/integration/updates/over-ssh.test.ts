import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { UpdateNodes } from "#support/update-nodes.ts";

const all = "  selector: { allNodes: true }\n";

describe("kcore orchestrate update", () => {
  let nodes: UpdateNodes;
  afterEach(() => nodes.stop());

  const runtimes = (...names: readonly string[]): readonly string[] => names.map((name) => nodes.runtime(name));

  it("says what it would do, does it, finds nothing to do, and takes it back", async () => {
    nodes = await UpdateNodes.start({ n1: "roles: [controller]", n2: "" });
    const plan = await nodes.update(all, "--dry-run");
    expect(plan.code, plan.stdout + plan.stderr).to.equal(0);
    for (const name of ["n1", "n2"]) {
      expect(plan.stdout).to.match(new RegExp(`${name} +prepared: no → ${nodes.target}`));
      expect(plan.stdout).to.match(new RegExp(`${name} +runtime: /nix/store/0+-kcore-0.1.0 → ${nodes.target}`));
      expect(nodes.report(name)).to.equal(undefined);
    }
    const done = await nodes.update(all);
    expect(done.code, done.stdout + done.stderr).to.equal(0);
    expect(runtimes("n1", "n2")).to.deep.equal(["0.2.0", "0.2.0"]);
    // The controller's node comes last.
    expect(done.stdout.indexOf("n2  activate")).to.be.lessThan(done.stdout.indexOf("n1  activate"));
    const words = ["n1", "n2"].map((name) => nodes.report(name)?.epoch);
    const again = await nodes.update(all);
    expect(again.code, again.stdout + again.stderr).to.equal(0);
    expect(["n1", "n2"].map((name) => nodes.report(name)?.epoch)).to.deep.equal(words);
    const back = await nodes.update(all, "--rollback");
    expect(back.code, back.stdout + back.stderr).to.equal(0);
    expect(runtimes("n1", "n2")).to.deep.equal(["0.1.0", "0.1.0"]);
  });

  it("stops at the first failure, and takes back in reverse order what it brought", async () => {
    nodes = await UpdateNodes.start({ n1: "", n2: "", n3: "", n4: "" });
    nodes.behave("n3", { hold: { kind: "service", message: "kcore-node-agent.service does not stay up" } });
    const ended = await nodes.update(`${all}  rollback: { automatic: true }\n`);
    expect(ended.code, ended.stdout + ended.stderr).to.equal(1);
    expect(ended.stdout).to.contain("service: kcore-node-agent.service does not stay up  [UPDATE_FAILED]");
    expect(ended.stdout).to.contain("what this run brought is taken back, in reverse order");
    expect(ended.stdout.indexOf("n2  back  changed")).to.be.lessThan(ended.stdout.indexOf("n1  back  changed"));
    expect(runtimes("n1", "n2", "n3", "n4")).to.deep.equal(["0.1.0", "0.1.0", "0.1.0", "0.1.0"]);
    expect(nodes.report("n4")?.state).to.equal("fenced");
    // What was taken back counts as done in the run's journals: it is not gone on with.
    nodes.behave("n3", {});
    const resumed = await nodes.kcore("runs", "resume", "last").ended;
    expect(resumed.code, resumed.stdout + resumed.stderr).to.equal(1);
    expect(resumed.stdout).to.contain("to begin anew: kcore orchestrate update -f rollout.yaml");
    expect(runtimes("n1", "n2", "n3", "n4")).to.deep.equal(["0.1.0", "0.1.0", "0.1.0", "0.1.0"]);
    expect((await nodes.update(all)).code).to.equal(0);
  });

  it("drains by a state, asks gates on the bastion, and takes the node back that one fails on", async () => {
    nodes = await UpdateNodes.start({ n1: "", n2: "" });
    const log = join(nodes.project.path, "log");
    nodes.project.write({
      log: "",
      "project/states/drained.yaml": `params: { word: { type: string, required: true } }\nsteps:\n  - { id: drain, command.run: { cmd: "echo {{node.name}} {{params.word}} >>${log}" } }\n`,
    });
    const spec = `${all}  rollback: { automatic: true }
  drain:
    enabled: true
    state: drained
    params: { word: "dr{{{{ained" }
    after: { command: 'echo "$KCORE_NODE back" >>${log}' }
  healthGates:
    - { name: web, command: 'echo "$KCORE_NODE asked" >>${log}; [ $KCORE_NODE = n1 ]', withinSeconds: 1 }
`;
    const ended = await nodes.update(spec.replace("dr{{{{ained", "drained"));
    expect(ended.code, ended.stdout + ended.stderr).to.equal(1);
    const lines = readFileSync(log, "utf8")
      .split("\n")
      .filter((line) => line !== "n2 asked" && line !== "");
    expect(lines.slice(0, 5)).to.deep.equal(["n1 drained", "n1 asked", "n1 back", "n2 drained", "n2 back"]);
    expect(runtimes("n1", "n2")).to.deep.equal(["0.1.0", "0.1.0"]);
  });

  it("leaves what it brought when only a gate failed and that is what the manifest says", async () => {
    nodes = await UpdateNodes.start({ n1: "", n2: "" });
    nodes.behave("n2", { hold: { kind: "gate", message: "web: it answers 500" } });
    const ended = await nodes.update(`${all}  rollback: { automatic: true, onHealthGateFailure: false }\n`);
    expect(ended.code).to.equal(1);
    expect(ended.stdout).to.contain("web: it answers 500  [UPDATE_GATE_FAILED]");
    expect(ended.stdout).to.contain("what this run brought stays");
    expect(runtimes("n1", "n2")).to.deep.equal(["0.2.0", "0.1.0"]);
  });

  it("touches nobody when a node has no updater, and says how it gets one", async () => {
    nodes = await UpdateNodes.start({ n1: "", n2: "" });
    rmSync(join(nodes.stateDir("n2"), "kcore-updater"));
    const ended = await nodes.update(all);
    expect(ended.code, ended.stdout + ended.stderr).to.equal(1);
    expect(ended.stdout).to.contain("no updater yet: kcore orchestrate deploy_node n2  [UPDATER_MISSING]");
    expect(runtimes("n1")).to.deep.equal(["0.1.0"]);
    for (const [words, says] of [
      [["orchestrate", "update", "--rollback"], "no file with an update is named"],
      [["orchestrate", "update", "n1", "-f", "rollout.yaml"], "the manifest says which nodes, and how"],
      [["orchestrate", "deploy_node", "n1", "--bundle", "x"], "belong to update, not to “deploy_node”"],
    ] as const) {
      const { code, stderr } = await nodes.kcore(...words).ended;
      expect([code, stderr]).to.deep.equal([2, stderr]);
      expect(stderr).to.contain(says);
    }
  });

  it("begins only when nodes that are away leave room", async () => {
    nodes = await UpdateNodes.start({ n1: "", n2: "", n3: "port: 1" });
    const short = await nodes.update(all);
    expect(short.code, short.stdout).to.equal(1);
    expect(short.stdout).to.contain("UPDATE_UNAVAILABLE");
    expect(runtimes("n1", "n2")).to.deep.equal(["0.1.0", "0.1.0"]);
    const enough = await nodes.update(`${all}  strategy: { type: batch, maxUnavailable: 2 }\n`);
    expect(enough.code, enough.stdout + enough.stderr).to.equal(3);
    expect(runtimes("n1", "n2")).to.deep.equal(["0.2.0", "0.2.0"]);
  });

  it("asks before it goes on behind a canary; --yes answers", async () => {
    nodes = await UpdateNodes.start({ n1: "", n2: "" });
    const spec = `${all}  strategy: { type: canary, canary: { nodeIds: [n2] } }\n`;
    const running = nodes.start(spec);
    const unanswered = await running.ended;
    expect(unanswered.code, unanswered.stdout + unanswered.stderr).to.not.equal(0);
    expect(runtimes("n1", "n2")).to.deep.equal(["0.1.0", "0.2.0"]);
    const promoted = await nodes.update(spec, "--yes");
    expect(promoted.code, promoted.stdout + promoted.stderr).to.equal(0);
    expect(runtimes("n1", "n2")).to.deep.equal(["0.2.0", "0.2.0"]);
  });

  for (const phase of ["prepared", "activating"])
    it(`goes on when its process was killed while a node was ${phase}`, async () => {
      nodes = await UpdateNodes.start({ n1: "", n2: "" });
      const running = nodes.start(all);
      const driver = await nodes.project.driver();
      while (nodes.report("n1")?.state !== phase) await sleep(20);
      process.kill(driver, "SIGKILL");
      await running.ended;
      const resumed = await nodes.kcore("runs", "resume", "last").ended;
      expect(resumed.code, resumed.stdout + resumed.stderr).to.equal(0);
      expect(runtimes("n1", "n2")).to.deep.equal(["0.2.0", "0.2.0"]);
    });

  it("finds a node back where it was when it comes back too late, and says so", async () => {
    nodes = await UpdateNodes.start({ n1: "" });
    nodes.behave("n1", { patience: 500 });
    const running = nodes.start(all);
    const driver = await nodes.project.driver();
    while (nodes.report("n1")?.waitsFor === undefined) await sleep(5);
    process.kill(driver, "SIGKILL");
    await running.ended;
    while (nodes.report("n1")?.state !== "failed") await sleep(20);
    const resumed = await nodes.kcore("runs", "resume", "last").ended;
    expect(resumed.code, resumed.stdout + resumed.stderr).to.equal(1);
    expect(resumed.stdout).to.contain("unreachable: the bastion did not confirm it");
    expect(runtimes("n1")).to.deep.equal(["0.1.0"]);
  });

  it("is refused by a node that works for somebody else", async () => {
    nodes = await UpdateNodes.start({ n1: "" });
    const folder = join(nodes.stateDir("n1"), "updates");
    const fence = { name: "other", epoch: 1, owner: "c1", generation: 1, seq: 1 };
    writeFileSync(join(folder, "journal.json"), JSON.stringify({ format: "kcore-updater/1", fence }));
    writeFileSync(join(folder, "unfinished"), "");
    const ended = await nodes.update(all);
    expect(ended.code, ended.stdout + ended.stderr).to.equal(1);
    expect(ended.stdout).to.contain("the node is busy with the update other of c1");
    expect(runtimes("n1")).to.deep.equal(["0.1.0"]);
  });
});
