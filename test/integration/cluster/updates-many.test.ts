import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { writeBundleFile } from "#cli/update/bundle-file.ts";
import { addController } from "#pki/contexts.ts";
import { writeRuntime } from "#support/bundles.ts";
import { codec, createTestCluster, eventually, passphrase } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { startControllers, type TestController } from "#support/controllers.ts";
import { kcoreProgram } from "#support/deploy.ts";
import { TestProject } from "#support/kcore.ts";
import { kcoreEnvironment } from "#support/program.ts";
import { startRolloutNodes, type Answer, type RolloutNode } from "#support/rollout-nodes.ts";
import { openShell } from "#support/terminal.ts";

const count = 200;
const maxUnavailable = 20;

describe("an update of 200 nodes", function () {
  this.timeout(240_000);
  let cluster: TestCluster;
  let controllers: readonly TestController[];
  let stop: () => Promise<void>;
  let project: TestProject;
  let nodes: { readonly nodes: readonly RolloutNode[]; readonly stop: () => Promise<void> };
  const held = Promise.withResolvers<Answer>();
  let underWay = 0;
  let most = 0;

  before(async () => {
    cluster = await createTestCluster();
    ({ controllers, stop } = await startControllers(cluster, 3, { dcs: ["DC1", "DC1", "DC2"], processes: true }));
    for (const { endpoint } of controllers) await addController({ home: cluster.home, codec }, "lab", endpoint);
    project = new TestProject();
    const { bundle, file } = await writeRuntime(project.path, "0.4.0");
    await writeBundleFile(join(project.project, "bundle"), { bundle, file, start: 0 });
    writeFileSync(join(project.project, "passphrase"), `${passphrase}\n`, { mode: 0o600 });
    const carryOut = (hostname: string) => async (step: string) => {
      if (step !== "activate") return { ok: true } as const;
      most = Math.max(most, ++underWay);
      // It takes its time; the last one as long as a screen is looked at.
      await sleep(100);
      const answer = hostname === `n${count}` ? await held.promise : ({ ok: true } as const);
      underWay--;
      return answer;
    };
    nodes = await startRolloutNodes(
      cluster,
      controllers,
      Array.from({ length: count }, (_, index) => {
        const hostname = `n${String(index + 1).padStart(3, "0")}`;
        return { hostname, dc: index % 2 === 0 ? "DC1" : "DC2", carryOut: carryOut(hostname) };
      }),
    );
  });
  after(async () => {
    await nodes?.stop();
    await stop?.();
    await project?.remove();
    await cluster?.remove();
  });

  it("is watched on one screen, and never has more nodes down than may be", async () => {
    const spec = {
      target: { version: "0.4.0" },
      selector: { allNodes: true },
      strategy: { type: "batch", maxUnavailable },
      approvalPolicy: "auto",
    };
    const manifest = codec.print({ kind: "ClusterUpdate", metadata: { name: "many" }, spec });
    writeFileSync(join(project.project, "many.yaml"), manifest);
    const shell = await openShell(
      { cwd: project.project, columns: 120, rows: 24 },
      { ...kcoreEnvironment, KCORE_HOME: cluster.home },
    );
    try {
      const words = "apply -f many.yaml --bundle bundle --passphrase-file passphrase -w";
      await shell.enter(`clear; ${kcoreProgram} update cluster ${words}; echo code $?`);
      await eventually(async () => {
        const { updates } = await (controllers[0] as TestController).operator.call("listUpdates", {});
        return updates[0]?.done === count - 1;
      }, 120_000);
      const screen = await shell.shows(/^rolling_out for \S+: 199\/200 done; owner /m);
      expect(screen)
        .to.match(/^DC2 +100 +99 +1$/m)
        .and.to.match(/^n200 +DC2 +\d+ +activating /m);
      expect(screen).not.to.match(/^n001 /m);
      held.resolve({ ok: true });
      expect(await shell.shows(/code 0/)).to.match(/^succeeded for \S+: 200\/200 done/m);
    } finally {
      await shell.close();
    }
    expect(most).to.be.within(2, maxUnavailable);
  });
});
