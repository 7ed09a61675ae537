import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { UpdateNodes } from "#support/update-nodes.ts";

const all = "  selector: { allNodes: true }\n";

describe("kcore orchestrate update", () => {
  let nodes: UpdateNodes;
  afterEach(() => nodes.stop());

  const runtimes = (...names: readonly string[]): readonly string[] => names.map((name) => nodes.runtime(name));

  it("stops at the first failure, and takes back in reverse order what it brought", async () => {
    nodes = await UpdateNodes.start({ n1: "", n2: "", n3: "", n4: "" });
    nodes.behave("n3", { hold: { kind: "service", message: "kcore-node-agent.service does not stay up" } });
    const ended = await nodes.update(`${all}  rollback: { automatic: true }\n`);
    expect(ended.code, ended.stdout + ended.stderr).to.equal(1);
    expect(ended.stdout).to.contain("service: kcore-node-agent.service does not stay up  [UPDATE_FAILED]");
    expect(ended.stdout).to.contain("the changes of this run are taken back, in reverse order");
    expect(ended.stdout.indexOf("n2  back  changed")).to.be.lessThan(ended.stdout.indexOf("n1  back  changed"));
    expect(runtimes("n1", "n2", "n3", "n4")).to.deep.equal(["0.1.0", "0.1.0", "0.1.0", "0.1.0"]);
    expect(nodes.report("n4")?.state).to.equal("fenced");
    // The run's journals count a node that was taken back as done, so that `resume` does not continue with it.
    nodes.behave("n3", {});
    const resumed = await nodes.kcore("runs", "resume", "last").ended;
    expect(resumed.code, resumed.stdout + resumed.stderr).to.equal(1);
    expect(resumed.stdout).to.contain("to begin anew: kcore orchestrate update -f rollout.yaml");
    expect(runtimes("n1", "n2", "n3", "n4")).to.deep.equal(["0.1.0", "0.1.0", "0.1.0", "0.1.0"]);
    expect((await nodes.update(all)).code).to.equal(0);
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

  it("goes on when its process was killed while a node was activating", async () => {
    nodes = await UpdateNodes.start({ n1: "", n2: "" });
    const running = nodes.start(all);
    const driver = await nodes.project.driver();
    while (nodes.report("n1")?.state !== "activating") await sleep(20);
    process.kill(driver, "SIGKILL");
    await running.ended;
    const resumed = await nodes.kcore("runs", "resume", "last").ended;
    expect(resumed.code, resumed.stdout + resumed.stderr).to.equal(0);
    expect(runtimes("n1", "n2")).to.deep.equal(["0.2.0", "0.2.0"]);
  });

  it("finds a node back where it was when it comes back too late, and says so", async () => {
    nodes = await UpdateNodes.start({ n1: "" });
    nodes.behave("n1", { isLate: true });
    const running = nodes.start(all);
    const driver = await nodes.project.driver();
    while (nodes.report("n1")?.state !== "activating") await sleep(5);
    process.kill(driver, "SIGKILL");
    await running.ended;
    while (nodes.report("n1")?.state !== "failed") await sleep(20);
    const resumed = await nodes.kcore("runs", "resume", "last").ended;
    expect(resumed.code, resumed.stdout + resumed.stderr).to.equal(1);
    expect(resumed.stdout).to.contain("unreachable: the bastion did not come back over a new connection");
    expect(runtimes("n1")).to.deep.equal(["0.1.0"]);
  });
});
