import { expect } from "chai";
import type { Registration } from "#api/schemas.ts";
import { watchNodes } from "#controller/nodes.ts";
import type { Nodes, NodeRules } from "#controller/nodes.ts";
import type { NodeRecord, Store } from "#controller/store.ts";

/** A store without a disk. */
function storeInMemory(): Store {
  const nodes = new Map<string, NodeRecord>();
  return {
    get: (id) => nodes.get(id),
    list: () => [...nodes.values()],
    update: async (id, make) => {
      const node = make(nodes.get(id));
      nodes.set(id, node);
      return node;
    },
    close: async () => undefined,
  };
}

const caller = (id: string, key = "k1") => ({ id, key, certificateExpiresAt: 9e12 });
const facts = (nodeId: string): Registration => ({
  nodeId,
  hostname: "n1",
  address: "192.0.2.1",
  cpu: 2,
  memory: 1024,
  labels: {},
  dc: "DC1",
  roles: ["worker"],
  version: "1",
});

describe("the nodes of a cluster", () => {
  let now: number;
  let store: Store;
  const watch = (rules: Partial<NodeRules> = {}): Nodes =>
    watchNodes(store, { controllerId: "c1", requireManualApproval: false, staleAfterMs: 90_000, ...rules }, () => now);
  const statusIn = (nodes: Nodes): string => nodes.get("a").status;
  const refusal = async (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => "allowed",
      (error: { code: string }) => error.code,
    );
  beforeEach(() => {
    now = 1_000_000;
    store = storeInMemory();
  });

  it("are ready as soon as they register, and for 90 s after each heartbeat", async () => {
    const nodes = watch();
    expect((await nodes.register(caller("a"), facts("a"))).status).to.equal("ready");
    now += 90_000;
    expect(statusIn(nodes)).to.equal("ready");
    await nodes.heartbeat(caller("a"));
    now += 90_001;
    expect(statusIn(nodes)).to.equal("not-ready");
    expect(await nodes.sweep()).to.deep.equal(["a"]);
    expect(await nodes.sweep()).to.deep.equal([]);
    expect((await nodes.heartbeat(caller("a"))).status).to.equal("ready");
    expect(nodes.get("a")).not.to.have.property("reason");
  });

  it("are not ready from their goodbye to their next heartbeat", async () => {
    const nodes = watch();
    await nodes.register(caller("a"), facts("a"));
    expect((await nodes.goodbye(caller("a"))).status).to.equal("not-ready");
    expect(nodes.get("a").reason).to.equal("its agent was stopped");
    expect((await nodes.heartbeat(caller("a"))).status).to.equal("ready");
  });

  it("wait for approval where that is required, and keep it when they register again", async () => {
    const nodes = watch({ requireManualApproval: true });
    expect((await nodes.register(caller("a"), facts("a"))).status).to.equal("pending");
    expect((await nodes.heartbeat(caller("a"))).status).to.equal("pending");
    expect((await nodes.setApproval("a", "approved")).status).to.equal("ready");
    expect((await nodes.register(caller("a"), facts("a"))).approval).to.equal("approved");
  });

  it("S-12: are refused everything once rejected, and heartbeats do not change that", async () => {
    const nodes = watch();
    await nodes.register(caller("a"), facts("a"));
    await nodes.setApproval("a", "rejected");
    for (const work of [
      nodes.heartbeat(caller("a")),
      nodes.goodbye(caller("a")),
      nodes.register(caller("a"), facts("a")),
    ]) {
      expect(await refusal(work)).to.equal("NODE_REJECTED");
    }
    expect(statusIn(nodes)).to.equal("rejected");
    await nodes.setApproval("a", "approved");
    expect(await refusal(nodes.heartbeat(caller("a")))).to.equal("allowed");
  });

  it("S-10: have to register again before another key is accepted", async () => {
    const nodes = watch();
    await nodes.register(caller("a"), facts("a"));
    expect(await refusal(nodes.heartbeat(caller("a", "k2")))).to.equal("NODE_UNKNOWN");
    await nodes.register(caller("a", "k2"), facts("a"));
    expect(await refusal(nodes.heartbeat(caller("a", "k2")))).to.equal("allowed");
    expect(await refusal(nodes.heartbeat(caller("a", "k1")))).to.equal("NODE_UNKNOWN");
  });

  it("are unknown before they registered", async () => {
    const nodes = watch();
    expect(await refusal(nodes.heartbeat(caller("b")))).to.equal("NODE_UNKNOWN");
    expect(() => nodes.get("b")).to.throw("no node b has registered");
  });

  it("are given the stale time anew when the controller starts, since nobody could reach it before", async () => {
    await watch().register(caller("a"), facts("a"));
    now += 3_600_000;
    const restarted = watch();
    expect(statusIn(restarted)).to.equal("ready");
    now += 90_001;
    expect(statusIn(restarted)).to.equal("not-ready");
  });

  it("stay not ready over a restart of the controller once they said goodbye", async () => {
    const nodes = watch();
    await nodes.register(caller("a"), facts("a"));
    await nodes.goodbye(caller("a"));
    expect(statusIn(watch())).to.equal("not-ready");
  });
});
