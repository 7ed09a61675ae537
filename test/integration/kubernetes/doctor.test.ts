import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { describeWithKube } from "#support/kube-server.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

type Check = { readonly id: string; readonly "command.run": { readonly cmd: string } };
const file = join(import.meta.dirname, "../../../states/validate/services.yaml");
const { steps } = parse(readFileSync(file, "utf8")) as { readonly steps: readonly Check[] };

describeWithKube("the doctor's checks of Kubernetes, by kubectl", (kube) => {
  const inFolder = folderOfEachTest("doctor");
  /** The output of a check that fails where kubectl has this kubeconfig; "" if it passes. */
  const says = (id: string, kubeconfig = kube().kubeconfig()): string => {
    const env = { ...process.env, HOME: inFolder(), KUBECONFIG: inFolder("kubeconfig") };
    writeFileSync(env.KUBECONFIG, kubeconfig);
    const cmd = steps.find((step) => step.id === id)?.["command.run"].cmd ?? "exit 1";
    const { status, stderr } = spawnSync("sh", ["-c", cmd], { encoding: "utf8", env });
    return status === 0 ? "" : stderr;
  };

  it("name nodes that are not ready, and a cluster without nodes or rights", async () => {
    const check = "Kubernetes nodes are ready";
    expect(says(check)).to.match(/the API server has no node\n$/);
    await kube().create("/api/v1/nodes", { metadata: { name: "n1" } });
    expect(says(check)).to.equal("n1 is Unknown\n");
    const conditions = [{ type: "Ready", status: "True", reason: "k", message: "m" }];
    await kube().patch("/api/v1/nodes/n1/status", { status: { conditions } });
    await kube().patch("/api/v1/nodes/n1", { spec: { unschedulable: true } });
    expect(says(check)).to.equal("");
    expect(says(check, kube().kubeconfig({ user: "nobody" }))).to.contain("Forbidden");
  });

  it("name pods of the system that do not run or are not ready", async () => {
    const check = "pods of the system run";
    const pods = "/api/v1/namespaces/kube-system/pods";
    expect(says(check)).to.equal("");
    await kube().create(pods, { metadata: { name: "net" }, spec: { containers: [{ name: "c", image: "i" }] } });
    expect(says(check)).to.equal("net is Pending (0/1 ready)\n");
    const container = { name: "c", image: "i", imageID: "", restartCount: 0, state: { running: {} } };
    for (const ready of [false, true]) {
      await kube().patch(`${pods}/net/status`, {
        status: { phase: "Running", containerStatuses: [{ ...container, ready }] },
      });
      expect(says(check)).to.equal(ready ? "" : "net is Running (0/1 ready)\n");
    }
    expect(says(check, kube().kubeconfig({ user: "nobody" }))).to.contain("Forbidden");
  });
});
