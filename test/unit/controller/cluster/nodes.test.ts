import { expect } from "chai";
import { watchCertificates } from "#controller/cluster/certificates.ts";
import { watchNodeLives, type Liveness } from "#controller/cluster/node-lives.ts";
import { watchNodeNames, type NodeNames } from "#controller/cluster/node-names.ts";
import { manageNodes, type Nodes } from "#controller/cluster/nodes.ts";
import { manageObjects } from "#controller/cluster/objects.ts";
import { manageVms } from "#controller/cluster/vms.ts";
import { watchRejects } from "#controller/cluster/rejects.ts";
import { openRecords, type Records } from "#controller/cluster/records.ts";
import { keys } from "#controller/cluster/registers.ts";
import { Refused } from "#controller/cluster/refused.ts";
import { registrationOf } from "#support/controllers.ts";
import { memoryReplica } from "#support/memory-replica.ts";

const by = "operator ann";

describe("the nodes of a cluster", () => {
  let now: number;
  let requiresManualApproval: boolean;
  let records: Records;
  let liveness: Liveness;
  let names: NodeNames;
  let nodes: Nodes;
  const caller = (id: string, key = "k1") => ({ id, key, serial: "01", certificateExpiresAt: 9e12 });
  const register = (id: string, changes = {}, key = "k1") =>
    nodes.register(caller(id, key), registrationOf(id, changes));
  const reasonOf = async (work: () => unknown): Promise<string> => {
    try {
      await work();
      return "allowed";
    } catch (error) {
      if (error instanceof Refused) return error.code;
      throw error;
    }
  };
  const writes = (): number => Object.values(records.replica.status().vv).reduce((sum, seq) => sum + seq, 0);

  beforeEach(() => {
    now = 1_700_000_000_000;
    requiresManualApproval = false;
    const replica = memoryReplica(() => now);
    records = openRecords(replica);
    const clock = (): number => now;
    liveness = watchNodeLives({ replica, controllerId: "c1", staleAfterMs: 90_000, clock, monotonic: clock });
    const certificates = watchCertificates(records, clock);
    names = watchNodeNames(records);
    nodes = manageNodes({
      records,
      certificates,
      rejects: watchRejects(records),
      liveness,
      names,
      controllerId: "c1",
      requiresManualApproval: () => requiresManualApproval,
      endpoints: () => [],
      clock,
      monotonic: clock,
    });
  });
  afterEach(() => records.replica.stop());

  it("are asked for a renewal 20 at a time, and only those whose certificate ends too early", async () => {
    const ids = Array.from({ length: 30 }, (_, index) => `n${index}`);
    for (const id of ids) await register(id);
    const nodesEndingBefore = new Date(9e12 + 1).toISOString();
    await records.put([{ key: keys.config("rotation"), value: { nodesEndingBefore } }]);
    const late = { ...caller("late"), certificateExpiresAt: 9e12 + 1 };
    await nodes.register(late, registrationOf("late"));
    const asked = (): number =>
      ids.filter((id) => nodes.heartbeat(caller(id), { nodeId: id }).renewEndingBefore === nodesEndingBefore).length;
    expect([asked(), asked()]).to.deep.equal([20, 0]);
    now += 500;
    expect(nodes.heartbeat(late, { nodeId: "late" }).renewEndingBefore).to.equal(undefined);
    expect(asked()).to.equal(10);
  });

  it("list at most 8 of the other nodes that share a name", async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `node-${String(index).padStart(2, "0")}`);
    for (const [index, id] of ids.entries()) await register(id, { hostname: "localhost" }, `k${index}`);
    const conflicts = Array.from(nodes.list(), ({ nameConflict }) => nameConflict);
    expect(conflicts.map((conflict) => conflict?.with.length)).to.deep.equal(ids.map(() => 8));
    expect(conflicts.filter((conflict) => conflict?.keepsName === true)).to.have.length(1);
  });

  it("are ready when they register, and for 90 s after each heartbeat", async () => {
    expect((await register("a")).status).to.equal("ready");
    now += 90_000;
    expect(nodes.get("a").status).to.equal("ready");
    nodes.heartbeat(caller("a"), { nodeId: "a" });
    now += 90_001;
    expect(nodes.get("a").status).to.equal("not-ready");
    expect(nodes.get("a").reason).to.match(/^no heartbeat since/);
  });

  it("write nothing to the disk for heartbeats and unchanged registrations", async () => {
    await register("a");
    const before = writes();
    for (let beat = 0; beat < 100; beat++) nodes.heartbeat(caller("a"), { nodeId: "a" });
    await register("a");
    expect(writes()).to.equal(before);
    await register("a", { cpu: 4 });
    expect(writes()).to.equal(before + 1);
  });

  it("wait for manual approval if the cluster requires it, and keep the approval", async () => {
    requiresManualApproval = true;
    expect(await register("a")).to.include({ approval: "pending", status: "pending" });
    await nodes.setApproval("a", { state: "approved", by });
    expect(nodes.get("a").status).to.equal("ready");
    await register("a", { version: "2" });
    expect(nodes.get("a").approval).to.equal("approved");
  });

  it("begin the next approval epoch after a reject, and keep approver and first registration when they register again", async () => {
    await register("a");
    const { registered } = nodes.get("a");
    await nodes.setApproval("a", { state: "rejected", by });
    expect(nodes.get("a")).to.include({ approval: "rejected", approvalEpoch: 1 });
    await nodes.setApproval("a", { state: "approved", by });
    now += 1000;
    await register("a", { version: "2" });
    expect(nodes.get("a")).to.include({ approval: "approved", approvalBy: by, approvalEpoch: 2, registered });
  });

  it("have their former key revoked when they register with another, and every key when removed", async () => {
    const [first, second] = ["a".repeat(64), "b".repeat(64)];
    await register("a", {}, first);
    const record = { spki: second, role: "node", id: "a", issuer: "x", notAfter: "", issued: "", by };
    await records.write([{ key: "cert/02", value: record }]);
    await register("a", {}, second);
    expect([first, second].map((spki) => records.replica.stands(keys.revoked(spki)))).to.deep.equal([true, false]);
    await nodes.remove("a", by, "broken");
    expect(records.replica.stands(keys.revoked(second))).to.equal(true);
  });

  it("S-10: are answered only with the registered key or a recorded one", async () => {
    await register("a");
    expect(await reasonOf(() => nodes.heartbeat(caller("a", "k2"), { nodeId: "a" }))).to.equal("NODE_UNKNOWN");
    expect(await reasonOf(() => register("a", {}, "k2"))).to.equal("KEY_UNREGISTERED");
    const record = { spki: "k2", role: "node", id: "a", issuer: "x", notAfter: "", issued: "", by };
    await records.write([{ key: "cert/02", value: record }]);
    expect(await reasonOf(() => register("a", {}, "k2"))).to.equal("allowed");
    expect(await reasonOf(() => nodes.heartbeat(caller("a", "k1"), { nodeId: "a" }))).to.equal("NODE_UNKNOWN");
  });

  it("refuse changes of the label dc, which is their datacenter", async () => {
    await register("a", { labels: { dc: "DC1" } });
    for (const change of [
      { set: { dc: "DC9" }, remove: [] },
      { set: {}, remove: ["dc"] },
    ])
      expect(await nodes.setLabels("a", change).catch((error: Error) => error.message)).to.match(/^the label dc is/);
    expect(nodes.get("a").labels).to.deep.equal({ dc: "DC1" });
  });

  it("have the operator's labels over their own, and a removed label stays hidden", async () => {
    await register("a", { labels: { tier: "ssd", rack: "1" } });
    await nodes.setLabels("a", { set: { tier: "hdd", zone: "z" }, remove: ["rack"] });
    expect(nodes.get("a").labels).to.deep.equal({ tier: "hdd", zone: "z" });
    await register("a", { labels: { tier: "ssd", rack: "2" } });
    expect(nodes.get("a").labels).to.deep.equal({ tier: "hdd", zone: "z" });
    await nodes.setLabels("a", { set: {}, remove: ["zone"] });
    expect(nodes.get("a").labels).to.deep.equal({ tier: "hdd" });
  });

  it("cannot return once removed", async () => {
    await register("a");
    expect([(await nodes.remove("a", by, "broken")).result, [...nodes.list()]]).to.deep.equal(["deleted", []]);
    expect(await reasonOf(() => nodes.get("a"))).to.equal("NODE_REMOVED");
    expect(
      await reasonOf(() => nodes.setExpected("a", { name: "n", roles: [], dc: "DC1", source: "roster" })),
    ).to.equal("NODE_REMOVED");
    expect(records.replica.get("revoked/k1")).to.equal(undefined); // k1 is no SHA-256, so it is kept but not shown
  });

  it("are not ready after goodbye or with bad health, with the reason", async () => {
    await register("a");
    expect(nodes.goodbye(caller("a")).status).to.equal("not-ready");
    expect(nodes.get("a").reason).to.equal("its agent was stopped");
    nodes.heartbeat(caller("a"), { nodeId: "a", health: { ok: false, reason: "disk full" } });
    expect(nodes.get("a")).to.include({ status: "not-ready", reason: "disk full" });
    nodes.heartbeat(caller("a"), { nodeId: "a" });
    expect(nodes.get("a").status).to.equal("ready");
  });

  it("write only values that differ from the present ones", async () => {
    await register("a");
    const objects = manageObjects(records, manageVms(records, nodes));
    const created = await objects.put("Cluster/a", { size: 1 });
    const updated = await objects.put("Cluster/a", { size: 2 });
    expect([created.result, updated.result]).to.deep.equal(["created", "updated"]);
    expect(await objects.put("Cluster/a", { size: 2 })).to.include({ result: "unchanged", dot: updated.dot });
    await nodes.setLabels("a", { set: { tier: "ab" }, remove: [] });
    await nodes.setLabels("a", { set: { tier: "ba" }, remove: [] });
    expect(nodes.get("a").labels, "letters in another order").to.deep.equal({ tier: "ba" });
  });
});
