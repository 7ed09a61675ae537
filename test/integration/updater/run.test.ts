import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { signStatement } from "#pki/statement.ts";
import type { Order } from "#rollout/order.ts";
import type { Report } from "#rollout/records.ts";
import { updatesFolder, writeOrder } from "#updater/files.ts";
import { readAccepted } from "#updater/journal.ts";
import { lockFolder } from "#base/lock-folder.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { createTestCluster, issueTo, startDaemon, writeCredentials, type TestCluster } from "#support/cluster.ts";
import { signOwner } from "#support/signed-update.ts";
import { statementOf } from "#support/update-world.ts";

const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";

/** The updater's process as systemd starts it; the lab tests updates with Nix and systemd. */
describe("kcore updater run", () => {
  let cluster: TestCluster;
  let folder: string;
  let config: object;
  beforeEach(async () => {
    cluster = await createTestCluster();
    const stateDir = join(cluster.dir, "state");
    folder = updatesFolder(stateDir);
    const tls = await writeCredentials(join(cluster.dir, "certs"), "node", issueTo(cluster.authority, "node", id));
    // The updater needs these of the agent's configuration.
    config = { controllers: ["192.0.2.1:9090"], stateDir, tls };
  });
  afterEach(() => cluster.remove());

  async function run(order?: Order): Promise<{ code: number | null; log: string; report: Report | undefined }> {
    if (order) await writeOrder(folder, order);
    const updater = await startDaemon(["updater", "run"], join(cluster.dir, "node-agent.yaml"), config);
    const code =
      updater.child.exitCode ?? (await new Promise<number | null>((done) => updater.child.once("exit", done)));
    return { code, log: updater.log(), report: (await readAccepted(folder))?.report };
  }
  const order = (fields: object, by = cluster): Order => ({
    fence: { name: "u1", epoch: 1, owner: "c1", generation: 1, seq: 1 },
    step: "fence",
    signed: signStatement(JSON.stringify(statementOf("0.2.0", {}, { cluster: "lab", ...fields })), by.authority),
    ownership: signOwner(cluster, "u1"),
  });

  it("accepts an order of this cluster's bastion, reports it, and ends", async () => {
    const { code, log, report } = await run(order({}));
    expect(code, log).to.equal(0);
    expect(report).to.include({ state: "fenced" });
    expect(await readdir(folder)).to.have.members([".lock", "journal.json"]);
    expect(log).to.match(/^\{"time":.*"message":"takes an order","unit":"kcore-updater"/m);
  });

  it("refuses an order of another bastion or for another cluster", async () => {
    const stranger = await createTestCluster();
    try {
      const { report } = await run(order({}, stranger));
      expect(report?.failure).to.deep.include({ kind: "refused" });
      expect(report?.failure?.message).to.match(/^the update is not the bastion's word/);
    } finally {
      await stranger.remove();
    }
    const other = order({ cluster: "other" });
    const { report } = await run({ ...other, fence: { ...other.fence, seq: 2 } });
    expect(report?.failure?.message).to.contain("it is for the cluster");
  });

  it("exits 1 when another updater holds the folder", async () => {
    await ensurePrivateFolder(folder);
    const unlock = await lockFolder(folder);
    try {
      const { code, log, report } = await run(order({}));
      // systemd starts it again.
      expect([code, report], log).to.deep.equal([1, undefined]);
      expect(log).to.contain("another updater is at work");
    } finally {
      unlock?.();
    }
  });
});
