import { expect } from "chai";
import { watchRejects } from "#controller/cluster/rejects.ts";
import { watchCertificates, type Certificates } from "#controller/cluster/certificates.ts";
import { watchRevocations } from "#controller/cluster/revocations.ts";
import { openRecords, type Records } from "#controller/cluster/records.ts";
import { keys } from "#controller/cluster/registers.ts";
import { Refused } from "#controller/cluster/refused.ts";
import { checkAccess } from "#controller/server/access.ts";
import { memoryReplica } from "#support/memory-replica.ts";

const now = 1_700_000_000_000;
const [key1, key2] = ["a".repeat(64), "b".repeat(64)];

describe("the registered keys", () => {
  let records: Records;
  let certificates: Certificates;
  const record = (serial: string, role: "node" | "operator" | "sub-ca", id: string, spki: string) => {
    const value = { spki, role, id, issuer: "1", notAfter: "2030-01-01T00:00:00.000Z", issued: "", by: "operator ann" };
    return records.put([certificates.changeToRecord(serial, value)]);
  };
  const refusalOf = (
    name: "getNode" | "listNodes" | "replicate",
    role: "controller" | "node" | "operator",
    id: string,
    key: string,
  ): Refused | undefined => {
    const access = checkAccess({
      records,
      certificates,
      rejects: watchRejects(records),
      isReady: () => true,
      knowsMembers: () => true,
      emptiness: () => undefined,
    });
    try {
      access.check(name, { identity: { cluster: "lab", role, id }, id, key }, id);
      return undefined;
    } catch (error) {
      if (error instanceof Refused) return error;
      throw error;
    }
  };
  const reasonOf = (...caller: Parameters<typeof refusalOf>): string => refusalOf(...caller)?.code ?? "allowed";

  beforeEach(() => {
    records = openRecords(memoryReplica(() => now));
    certificates = watchCertificates(records, () => now);
  });
  afterEach(() => {
    certificates.stop();
    records.replica.stop();
  });

  it("S-10: a certificate of the CA suffices only until the first operator is recorded", async () => {
    expect(reasonOf("listNodes", "operator", "eve", key2)).to.equal("allowed");
    await record("01", "operator", "ann", key1);
    expect(reasonOf("listNodes", "operator", "eve", key2)).to.equal("KEY_UNREGISTERED");
    expect(reasonOf("listNodes", "operator", "ann", key1)).to.equal("allowed");
  });

  it("S-10: a node is refused with a key that is neither registered nor recorded for it", async () => {
    const registration = {
      hostname: "a",
      address: "",
      dc: "DC1",
      roles: [],
      labels: {},
      cpu: 1,
      memory: 0,
      version: "1",
    };
    const reg = { ...registration, key: key1, serial: "01", certificateExpires: "", registeredAt: "" };
    await records.put([{ key: keys.node("a").reg, value: reg }]);
    expect(reasonOf("getNode", "node", "a", key1)).to.equal("allowed");
    expect(reasonOf("getNode", "node", "a", key2)).to.equal("KEY_UNREGISTERED");
    await record("02", "node", "b", key2);
    expect(reasonOf("getNode", "node", "a", key2), "another node's").to.equal("KEY_UNREGISTERED");
    await record("03", "operator", "a", key2);
    expect(reasonOf("getNode", "node", "a", key2), "another role's").to.equal("KEY_UNREGISTERED");
    await record("04", "node", "a", key2);
    expect(reasonOf("getNode", "node", "a", key2)).to.equal("allowed");
    await records.put([{ key: keys.node("a").removed, value: { at: "", by: "operator ann", reason: "" } }]);
    expect(reasonOf("getNode", "node", "a", key2)).to.equal("NODE_REMOVED");
  });

  it("a revoked key of a removed node or its controller leads to roster adopt, any other to a new key", async () => {
    for (const spki of [key1, key2]) await certificates.revoke({ spki, reason: "", by: "operator ann" });
    expect(refusalOf("getNode", "node", "a", key1)?.hint).to.contain("node.key");
    await records.put([{ key: keys.node("a").removed, value: { at: "", by: "operator ann", reason: "" } }]);
    for (const [name, role, key] of [
      ["getNode", "node", key1],
      ["replicate", "controller", key2],
    ] as const) {
      expect(reasonOf(name, role, "a", key)).to.equal("KEY_REVOKED");
      expect(refusalOf(name, role, "a", key)?.hint).to.contain("kcore roster adopt NODE");
    }
  });

  it("S-10: a new node's key needs a record once an operator is recorded", async () => {
    expect(certificates.isOfNode("a", key2, undefined)).to.equal(true);
    await record("01", "operator", "ann", key1);
    expect(certificates.isOfNode("a", key2, undefined)).to.equal(false);
    expect(certificates.isOfNode("ann", key1, undefined), "an operator's key").to.equal(false);
  });

  it("are listed as active, expired or revoked", async () => {
    await record("01", "node", "a", key1);
    const ended = { spki: key2, role: "node", id: "a", issuer: "1", issued: "", by: "operator ann" } as const;
    await records.put([certificates.changeToRecord("02", { ...ended, notAfter: new Date(now).toISOString() })]);
    await certificates.revoke({ spki: key1, reason: "", by: "operator ann" });
    expect(Array.from(certificates.list(), ({ serial, status }) => `${serial} ${status}`)).to.deep.equal([
      "01 revoked",
      "02 expired",
    ]);
  });

  it("are listed as revoked if this version cannot read the revocation", async () => {
    await record("01", "operator", "ann", key1);
    await records.replica.write([{ key: keys.revoked(key1), value: "of a newer version" }]);
    expect([...certificates.list()].map(({ status }) => status)).to.deep.equal(["revoked"]);
  });

  it("S-11: are sent to agents once if revoked and not a node's, with the same version from every controller", async () => {
    const revocations = watchRevocations(records, certificates);
    const revoke = (spki: string) => certificates.revoke({ spki, reason: "", by: "operator ann" });
    expect(revocations.newsFor("")).to.deep.equal({});
    await record("01", "operator", "ann", key1);
    await record("02", "node", "a", key2);
    await revoke(key2);
    expect(revocations.newsFor("")).to.deep.equal({});
    await revoke(key1);
    const { revoked } = revocations.newsFor("");
    expect(revoked?.keys).to.deep.equal([key1]);
    expect(revocations.newsFor(revoked?.version)).to.deep.equal({});
    expect(revocations.newsFor(undefined), "an agent that keeps none").to.deep.equal({});
    const again = watchRevocations(records, certificates);
    expect(again.newsFor("").revoked).to.deep.equal(revoked);
    const key3 = "c".repeat(64);
    await revoke(key3);
    expect(again.newsFor(revoked?.version).revoked?.keys).to.have.members([key1, key3]);
    await record("03", "node", "b", key3);
    expect(again.newsFor("").revoked).to.deep.equal(revoked);
    for (const each of [revocations, again]) each.stop();
  });

  it("keep the first record of a certificate when a deployment records it again", async () => {
    await record("04", "node", "a", key1);
    const first = records.value("certificate", keys.certificate("04"));
    const second = { ...first, issuer: "kcore-cluster-sub-ca", issued: "later", by: "operator bob" } as typeof first;
    if (!second) throw new Error("nothing was recorded");
    const { result } = await records.put([certificates.changeToRecord("04", second)]);
    expect(result).to.equal("unchanged");
    expect(records.value("certificate", keys.certificate("04"))).to.deep.equal(first);
    expect(certificates.changeToRecord("04", { ...second, spki: key2 }).value).to.have.property("spki", key2);
  });

  it("are deleted when they cannot be renewed any more, with a replaced key's revocation, but not an operator's revocation", async () => {
    const dayMs = 86_400_000;
    let clock = now;
    const live = watchCertificates(records, () => clock);
    const end = new Date(now + dayMs).toISOString();
    const add = (serial: string, role: "node" | "operator" | "sub-ca", spki: string, notAfter = end) =>
      records.put([
        live.changeToRecord(serial, { spki, role, id: "a", issuer: "1", notAfter, issued: "", by: "operator ann" }),
      ]);
    const [key3, key4] = ["c".repeat(64), "d".repeat(64)];
    await add("01", "node", key1);
    await add("02", "operator", key2);
    await add("03", "sub-ca", key3);
    await add("04", "node", key4);
    await add("05", "node", "e".repeat(64), new Date(now + 400 * dayMs).toISOString());
    await records.write(live.changesToSupersede("a", key4, "node a"));
    await live.revoke({ spki: key3, reason: "", by: "operator ann" });
    const forgettable = (days: number): readonly string[] => {
      clock = now + days * dayMs;
      return live.changesToForget().map(({ key }) => key);
    };
    expect(forgettable(31)).to.deep.equal([]);
    const due = [keys.certificate("01"), keys.certificate("04"), keys.revoked(key1)];
    expect(forgettable(33)).to.have.members(due);
    // A compromised controller could write a revocation that ends soon, and then delete it.
    const soon = { at: "", by: "", reason: "", notAfter: new Date(now).toISOString() };
    await records.write([{ key: keys.revoked(key4), value: soon }]);
    expect(live.changesToRevoke("node", "a", [], soon).map(({ key }) => key)).to.include(keys.revoked(key4));
    expect((await live.revoke({ spki: key1, reason: "stolen", by: "operator ann" })).result).to.equal("created");
    expect(forgettable(33), "an operator's revocation is permanent").to.deep.equal(
      due.slice(1, 2).concat(keys.revoked(key4)),
    );
    live.stop();
  });

  it("stay revoked while another certificate of the same key, issued during a partition, is valid", async () => {
    const dayMs = 86_400_000;
    let clock = now;
    const kept = openRecords(memoryReplica(() => clock));
    const live = watchCertificates(kept, () => clock);
    const add = (serial: string, days: number, notAfter = new Date(now + days * dayMs).toISOString()) => {
      const value = { spki: key1, role: "node", id: "a", issuer: "1", notAfter, issued: "", by: "" } as const;
      return kept.put([live.changeToRecord(serial, value)]);
    };
    await add("01", 1);
    await kept.write(live.changesToSupersede("a", key2, "node a"));
    await add("02", 90);
    const forget = async (days: number) => {
      clock = now + days * dayMs;
      await kept.write(live.changesToForget());
      return [live.isRecorded(key1, "node", "a"), live.isRevoked(key1)];
    };
    expect(await forget(33)).to.deep.equal([true, true]);
    expect(Array.from(live.list(), ({ serial }) => serial)).to.deep.equal(["02"]);
    expect(await forget(122)).to.deep.equal([false, false]);
    // Deleting a register of this form is refused, and a refused write would fail renewals.
    await add("03", 0, "2020-01-01T00:00Z");
    expect(live.changesToForget()).to.deep.equal([]);
    live.stop();
    kept.replica.stop();
  });

  it("revokes a controller's sub-CA together with its keys", async () => {
    await record("03", "sub-ca", "c2", key2);
    const gone = { at: "", by: "operator ann", reason: "" };
    const changes = certificates.changesToRevoke("controller", "c2", [key1], gone);
    expect(changes.map(({ key }) => key)).to.have.members([keys.revoked(key1), keys.revoked(key2)]);
  });
});
