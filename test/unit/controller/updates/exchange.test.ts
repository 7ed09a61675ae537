import { expect } from "chai";
import { Busy } from "#controller/cluster/refused.ts";
import { keys } from "#controller/cluster/registers.ts";
import { openExchange, type Exchange } from "#controller/updates/exchange.ts";
import { fenceOf } from "#rollout/order.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { old, SteppedRollout, target } from "#support/stepped-rollout.ts";

describe("the exchange of orders and reports with a node", () => {
  let known: KnownUpdates;
  let exchange: Exchange;
  beforeEach(async () => {
    known = await new KnownUpdates().nodes("n1", "n2");
    exchange = openExchange(known.parts);
  });
  afterEach(() => {
    exchange.stop();
    known.stop();
  });

  const startedRollout = (name = "u"): SteppedRollout => new SteppedRollout({ nodes: ["n1"] }).set({ name }).confirm();
  const fence = (rollout: SteppedRollout) => fenceOf(rollout.view.name, rollout.row("n1"));
  /** The order that the node gets, as step and update; without one, whether an update concerns the node. */
  const orderFor = async (
    node: string,
    request: Partial<Parameters<Exchange["exchange"]>[1]> = {},
  ): Promise<unknown> => {
    const { concerned, order } = await exchange.exchange(node, { nodeId: node, ...request });
    return order ? [order.step, order.fence.name] : concerned;
  };
  const reportedState = (): unknown => known.parts.index.read("u")?.reports.get("n1")?.state;

  it("gives the present order to a node of the update", async () => {
    const rollout = startedRollout();
    await known.update(rollout);
    expect([await orderFor("n1"), await orderFor("n2")]).to.deep.equal([["prepare", "u"], false]);
    expect([exchange.concerns("n1"), exchange.concerns("n2")]).to.deep.equal([true, false]);
  });

  it("gives no order of an owner without the bastion's signature, as of an earlier version", async () => {
    const { name, owner } = await known.update(startedRollout());
    await known.parts.records.write([{ key: keys.update(name).owner, value: { ...owner, signed: undefined } }]);
    expect(await orderFor("n1")).to.equal(false);
  });

  it("waits for the next order when the node knows the present one", async () => {
    const rollout = startedRollout();
    await known.update(rollout);
    const answer = orderFor("n1", { known: fence(rollout) });
    await known.update(rollout.report("n1", "prepared"));
    expect(await answer).to.deep.equal(["activate", "u"]);
  });

  it("gives no order of a former owner or an earlier generation", async () => {
    const [former, earlier] = [startedRollout("u"), startedRollout("v")];
    former.view = { ...former.view, owner: { epoch: 2, owner: "c2" } };
    earlier.view = { ...earlier.view, generation: 2 };
    for (const rollout of [former, earlier]) await known.update(rollout);
    expect(await orderFor("n1")).to.equal(false);
  });

  it("prefers an update under way to an ended one, whose last order the node has yet to confirm", async () => {
    const [ended, underWay] = [startedRollout("u").request("cancel"), startedRollout("v")];
    await known.update(ended);
    expect(await orderFor("n1")).to.deep.equal(["fence", "u"]);
    await known.update(underWay);
    expect(await orderFor("n1")).to.deep.equal(["prepare", "v"]);
    await known.update(underWay.finish("n1"));
    await known.update(ended.report("n1", "fenced"));
    expect(await orderFor("n1")).to.deep.equal(["fence", "v"]);
    await known.update(underWay.report("n1", "fenced", { present: target }));
    expect(await orderFor("n1")).to.equal(false);
  });

  it("concerns a node at work of an ended update until the node reports the result", async () => {
    const ended = startedRollout("u").report("n1", "preparing").request("cancel").report("n1", "preparing");
    await known.update(ended);
    expect(exchange.concerns("n1")).to.equal(true);
    // A next generation without rows changes nothing.
    ended.view = { ...ended.view, generation: 2 };
    await known.update(ended);
    expect(exchange.concerns("n1")).to.equal(true);
    const report = { fence: fence(ended), present: old, at: 1, state: "prepared", epoch: 99 } as const;
    expect(await orderFor("n1", { known: report.fence, report })).to.equal(false);
    expect([exchange.concerns("n1"), reportedState()]).to.deep.equal([false, "prepared"]);
  });

  it("waits with a node at work for the next order, and for no report about an update that the node has left", async () => {
    const working = startedRollout("u").report("n1", "preparing").request("cancel").report("n1", "preparing");
    await known.update(working);
    const answer = orderFor("n1");
    await known.update(startedRollout("v"));
    expect(await answer).to.deep.equal(["prepare", "v"]);
    await known.update(startedRollout("v").request("cancel").report("n1", "fenced", { epoch: 9 }));
    expect(exchange.concerns("n1")).to.equal(false);
  });

  it("keeps a node's latest report, and no report of a node outside the update", async () => {
    const rollout = startedRollout();
    await known.update(rollout);
    const base = { fence: fence(rollout), present: old, at: 1 };
    const report = (node: string, state: "prepared" | "preparing", epoch: number) =>
      orderFor(node, { report: { ...base, state, epoch } });
    await report("n1", "prepared", 20);
    await report("n1", "preparing", 19);
    expect(reportedState()).to.equal("prepared");
    await report("n2", "preparing", 21);
    expect([...(known.parts.index.read("u")?.reports.keys() ?? [])]).to.deep.equal(["n1"]);
  });

  it("limits the rate of a node's reports", async () => {
    const rollout = startedRollout();
    await known.update(rollout);
    const report = { fence: fence(rollout), present: old, at: 1, state: "preparing" } as const;
    for (let epoch = 10; epoch < 50; epoch++) await orderFor("n1", { report: { ...report, epoch } });
    const refused = await orderFor("n1", { report: { ...report, epoch: 50 } }).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Busy);
  });
});
