import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { Credentials } from "#api/client.ts";
import { protocols } from "#controller/replica/messages.ts";
import { createTestCluster, eventually, issueTo } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { spkiOf, startControllers } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { openWirePeer } from "#support/wire-peer.ts";
import type { WirePeer } from "#support/wire-peer.ts";

const newest = protocols[1];

describe("controllers of two versions", () => {
  let cluster: TestCluster;
  let controllers: readonly [TestController, TestController];
  let stop: () => Promise<void>;
  let other: { readonly id: string; readonly credentials: Credentials };
  const peers: WirePeer[] = [];

  before(async () => {
    cluster = await createTestCluster();
    const started = await startControllers(cluster, 2, { processes: true });
    controllers = started.controllers as typeof controllers;
    ({ stop } = started);
  });
  after(async () => {
    await stop();
    await cluster.remove();
  });
  beforeEach(async () => {
    const id = randomUUID();
    other = { id, credentials: issueTo(cluster.authority, "controller", id) };
    await controllers[0].operator.call("registerController", { spki: spkiOf(other.credentials) }, { id });
  });
  afterEach(() => {
    for (const peer of peers.splice(0)) peer.close();
  });

  const connectPeer = async (
    controller: TestController,
    says: Pick<Parameters<typeof openWirePeer>[1], "hello" | "welcome">,
  ) => {
    const peer = await openWirePeer(controller, { ...other, ...says });
    peers.push(peer);
    return peer;
  };

  it("F-29: speak the newest protocol that both know, and ignore unknown parts of a greeting", async () => {
    for (const [proto, common] of [
      [[1, 1], 1],
      [[0, 1], 1],
      [[0, newest + 5], newest],
    ] as const) {
      const peer = await connectPeer(controllers[0], { hello: { proto, sv: 2, features: { quotas: [true] } } });
      expect(await peer.next("welcome")).to.include({ proto: common });
      // Both sides have sent their welcome: now the controller pulls.
      await peer.next("pull");
      peer.close();
    }
  });

  it("F-29: refuse each other with a reason when they share no protocol, and keep working", async () => {
    const [first] = controllers;
    const greetings = [
      { hello: { proto: [newest + 1, newest + 2] } },
      { hello: { proto: [0, 0] } },
      // The greeting of an unknown protocol, in an unknown shape.
      { hello: { proto: [newest + 1, newest + 1], id: { uuid: other.id }, vv: "none" } },
      { welcome: { proto: newest + 1 } },
    ];
    for (const says of greetings) {
      const peer = await connectPeer(first, says);
      const { code, message } = await peer.next("refuse");
      expect(code).to.equal("PROTOCOL_UNKNOWN");
      expect(message).to.match(new RegExp(`^this controller speaks replication protocol ${newest}`));
      await eventually(() => peer.isClosed());
    }
    const { alarms } = await first.operator.call("replicationStatus", {});
    expect(alarms.map((alarm) => alarm.code)).not.to.include("PEER_MALFORMED");
    await first.operator.call("putObject", { value: { goes: "on" } }, { id: "Version/one" });
    await untilAgreed(controllers);
  });

  it("F-29: show the reason of a newer one's refusal until it accepts them", async () => {
    const [first] = controllers;
    const newer = await connectPeer(first, {});
    newer.send({
      t: "refuse",
      code: "PROTOCOL_RETIRED",
      message: "this controller speaks replication protocol 2 to 4",
    });
    const viewOfPeer = async (): Promise<
      { readonly state: string; readonly reason?: string | undefined } | undefined
    > => {
      const status = await first.operator.call("replicationStatus", {});
      return status.peers.find(({ controllerId }) => controllerId === other.id);
    };
    const view = await eventually(async () => {
      const found = await viewOfPeer();
      return found?.state === "refused" ? found : undefined;
    });
    expect(view.reason).to.equal(
      "it refuses us: this controller speaks replication protocol 2 to 4 (PROTOCOL_RETIRED)",
    );
    const upgraded = await connectPeer(first, {});
    await upgraded.next("pull");
    await eventually(async () => (await viewOfPeer())?.state === "connected");
  });

  it("F-29: keep and replicate registers unchanged that only the newer one understands", async () => {
    const [first, second] = controllers;
    const node = randomUUID();
    const future = new Map([
      ["quota/team-a", '{ "cpu":4,\t"ünit" : "cores" }'],
      [`node/${node}/reg`, '{"sv":2,"hostname":["n1","n1.example"]}'],
      [`node/${node}/label/tier`, '{"value":"ssd","since":"2027-01-01T00:00:00Z"}'],
      ["object/Cluster/main", '{"sv":3,"nested":{"more":[1,2,{"still":null}]}}'],
    ]);
    const newer = await connectPeer(first, { hello: { proto: [1, 2] } });
    await newer.next("pull");
    newer.push([...future].map(([key, text]) => ({ key, text })));

    const quarantined = async ({ operator }: TestController): Promise<number> =>
      (await operator.call("replicationStatus", {})).quarantined;
    const origin = `${other.id}#1`;
    const untilArrived = async (controller: TestController): Promise<void> => {
      await eventually(async () => (await controller.operator.call("replicationStatus", {})).vv[origin] === 1);
      // Unreadable registers are hidden; readable ones with unknown fields are shown.
      await eventually(async () => (await quarantined(controller)) === 2);
      const { value } = await controller.operator.call("getObject", {}, { id: "Cluster/main" });
      expect(value).to.deep.equal(JSON.parse(future.get("object/Cluster/main") ?? ""));
    };
    await untilArrived(second);
    await untilAgreed(controllers);

    // A quarantined register survives a crash (journal) and a stop (snapshot) of the controller that cannot read it, and returns unchanged.
    await second.stop("SIGKILL");
    await second.start();
    await second.stop("SIGTERM");
    await second.start();
    await untilArrived(second);
    await untilAgreed(controllers);
    const again = await connectPeer(second, { hello: { proto: [1, 2], origin: `${other.id}#2` } });
    await again.next("pull");
    const found = new Map((await again.pullAll()).map(({ key, text }) => [key, text]));
    for (const [key, text] of future) expect(found.get(key)).to.equal(text);
    const { alarms } = await second.operator.call("replicationStatus", {});
    expect(alarms.map(({ code }) => code)).to.include("QUARANTINED");
    expect(alarms.map(({ code }) => code)).not.to.include("STATE_DIVERGENCE");
  });
});

/** Waits until all controllers have the same transactions and the same state. */
async function untilAgreed(controllers: readonly TestController[]): Promise<void> {
  await eventually(async () => {
    const states = await Promise.all(controllers.map(({ operator }) => operator.call("replicationStatus", {})));
    const views = states.map(({ vv, digest }) =>
      JSON.stringify([Object.entries(vv).toSorted(([a], [b]) => (a < b ? -1 : 1)), digest]),
    );
    return new Set(views).size === 1;
  });
}
