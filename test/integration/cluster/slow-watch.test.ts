import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { expect } from "chai";
import { addController } from "#pki/contexts.ts";
import { codec, createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { nodeCredentials, recordAt, registrationOf, startController } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { TestProject } from "#support/kcore.ts";

/** A process, its output and its error output so far, and its end. */
function collect(child: ChildProcess) {
  let [output, errors] = ["", ""];
  child.stdout?.on("data", (text: string) => (output += text));
  child.stderr?.on("data", (text: string) => (errors += text));
  return { child, told: () => output, complained: () => errors, ended: once(child, "exit") };
}

describe("a watch whose client does not read", () => {
  let cluster: TestCluster;
  let controller: TestController;
  let project: TestProject;
  let loaded: string;

  const register = async (hostname: string): Promise<string> => {
    const id = randomUUID();
    const credentials = nodeCredentials(cluster, id);
    await recordAt(controller, credentials);
    await controller.clientOf(credentials).call("registerNode", registrationOf(id, { hostname }));
    return id;
  };
  /** Changes a node's 64 labels until the condition holds; each change is some 25 KiB in a watch. */
  const changeUntil = async (isEnough: (turn: number) => boolean): Promise<void> => {
    for (let turn = 0; turn < 500 && !isEnough(turn); turn++) {
      const changes = Array.from({ length: 8 }, (_, part) => {
        const set = Object.fromEntries(
          Array.from({ length: 64 }, (_, index) => [`l${index}`, `${turn}.${part} `.padEnd(250, "x")]),
        );
        return controller.operator.call("setLabels", { set }, { id: loaded });
      });
      await Promise.all(changes);
    }
  };
  const cutsIn = (log: string): number => log.split("a watch was cut").length - 1;

  before(async () => {
    cluster = await createTestCluster();
    controller = await startController(cluster, { process: true });
    project = new TestProject();
    await addController({ home: cluster.home, codec }, "lab", controller.endpoint);
    loaded = await register("loaded");
  });
  after(async () => {
    await controller?.end();
    await project?.remove();
    await cluster?.remove();
  });

  it("is cut at a backlog of 16 MiB; get -w and top reconnect and show what they missed", async () => {
    const get = collect(project.start(["get", "nodes", "-w", "-o", "json"], { KCORE_HOME: cluster.home }).child);
    const program = join(import.meta.dirname, "../../support/follow-fleet-process.ts");
    const env = { ...process.env, KCORE_HOME: cluster.home };
    const words = ["--disable-warning=ExperimentalWarning", program, controller.endpoint];
    const top = collect(spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"], env }));
    const both = [get, top];
    try {
      await eventually(() => both.every(({ told }) => told().includes("loaded")));
      // Both are watching once they show this node.
      await register("before");
      await eventually(() => both.every(({ told }) => told().includes("before")));
      for (const { child } of both) child.kill("SIGSTOP");
      await changeUntil(() => cutsIn(controller.log()) >= 2);
      expect(cutsIn(controller.log())).to.equal(2);
      await register("missed");
      await controller.operator.call("rejectNode", { reason: "while nobody read" }, { id: loaded });
      for (const { child } of both) child.kill("SIGCONT");
      await eventually(() => both.every(({ told }) => told().includes("missed")));
      await eventually(() => get.told().includes(`"rejected"`) && top.told().includes("loaded: rejected"));
      // The client reads all buffered messages before it sees the end of the connection.
      await eventually(() => get.complained().includes("the next controller is asked"));
      await eventually(() => /^lost\n[^]*^live$/m.test(top.told()));
      // The view continues.
      await register("after");
      await eventually(() => both.every(({ told }) => told().includes("after")));
      expect(cutsIn(controller.log())).to.equal(2);
    } finally {
      for (const { child, ended } of both) {
        child.kill("SIGCONT");
        child.kill("SIGINT");
        await ended;
      }
    }
  });
});
