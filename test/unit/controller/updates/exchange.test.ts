import { expect } from "chai";
import { Busy } from "#controller/cluster/refused.ts";
import { keys } from "#controller/cluster/registers.ts";
import { openExchange, type Exchange } from "#controller/updates/exchange.ts";
import { fenceOf } from "#rollout/order.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { old, SteppedRollout, target } from "#support/stepped-rollout.ts";

describe("what a controller and a node say of an update", () => {
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

  const begun = (name = "u"): SteppedRollout => new SteppedRollout({ nodes: ["n1"] }).set({ name }).confirm();
  const fence = (rollout: SteppedRollout) => fenceOf(rollout.view.name, rollout.row("n1"));
  /** The step that the node gets, and its update. */
  const given = async (node: string, said: Partial<Parameters<Exchange["exchange"]>[1]> = {}): Promise<unknown> => {
    const { concerned, order } = await exchange.exchange(node, { nodeId: node, ...said });
    return order ? [order.step, order.fence.name] : concerned;
  };
  const reported = (): unknown => known.parts.index.read("u")?.reports.get("n1")?.state;

  it("is the present order, to a node that the update has", async () => {
    const rollout = begun();
    await known.update(rollout);
    expect([await given("n1"), await given("n2")]).to.deep.equal([["prepare", "u"], false]);
    expect([exchange.concerns("n1"), exchange.concerns("n2")]).to.deep.equal([true, false]);
  });

  it("is none of an owner that the bastion did not sign, as an earlier version made it", async () => {
    const { name, owner } = await known.update(begun());
    await known.parts.records.write([{ key: keys.update(name).owner, value: { ...owner, signed: undefined } }]);
    expect(await given("n1")).to.equal(false);
  });

  it("waits for the next order when the node knows the present one", async () => {
    const rollout = begun();
    await known.update(rollout);
    const answer = given("n1", { known: fence(rollout) });
    await known.update(rollout.report("n1", "prepared"));
    expect(await answer).to.deep.equal(["activate", "u"]);
  });

  it("is no order of a former owner, nor of an earlier generation", async () => {
    const [former, earlier] = [begun("u"), begun("v")];
    former.view = { ...former.view, owner: { epoch: 2, owner: "c2" } };
    earlier.view = { ...earlier.view, generation: 2 };
    for (const rollout of [former, earlier]) await known.update(rollout);
    expect(await given("n1")).to.equal(false);
  });

  it("is of an update that goes on, then of one that has ended, until the node has confirmed its last word", async () => {
    const [ended, going] = [begun("u").request("cancel"), begun("v")];
    await known.update(ended);
    expect(await given("n1")).to.deep.equal(["fence", "u"]);
    await known.update(going);
    expect(await given("n1")).to.deep.equal(["prepare", "v"]);
    await known.update(going.finish("n1"));
    await known.update(ended.report("n1", "fenced"));
    expect(await given("n1")).to.deep.equal(["fence", "v"]);
    await known.update(going.report("n1", "fenced", { present: target }));
    expect(await given("n1")).to.equal(false);
  });

  it("concerns a node that is at work when its update has ended, until it says what came of that", async () => {
    const ended = begun("u").report("n1", "preparing").request("cancel").report("n1", "preparing");
    await known.update(ended);
    expect(exchange.concerns("n1")).to.equal(true);
    // A next generation without rows changes nothing.
    ended.view = { ...ended.view, generation: 2 };
    await known.update(ended);
    expect(exchange.concerns("n1")).to.equal(true);
    const report = { fence: fence(ended), present: old, at: 1, state: "prepared", epoch: 99 } as const;
    expect(await given("n1", { known: report.fence, report })).to.equal(false);
    expect([exchange.concerns("n1"), reported()]).to.deep.equal([false, "prepared"]);
  });

  it("waits with a node that is at work for the next order, and for no word of what it has since left for another update", async () => {
    const working = begun("u").report("n1", "preparing").request("cancel").report("n1", "preparing");
    await known.update(working);
    const answer = given("n1");
    await known.update(begun("v"));
    expect(await answer).to.deep.equal(["prepare", "v"]);
    await known.update(begun("v").request("cancel").report("n1", "fenced", { epoch: 9 }));
    expect(exchange.concerns("n1")).to.equal(false);
  });

  it("keeps a node's later word, and neither an earlier one nor that of a node which the update has not", async () => {
    const rollout = begun();
    await known.update(rollout);
    const word = { fence: fence(rollout), present: old, at: 1 };
    const say = (node: string, state: "prepared" | "preparing", epoch: number) =>
      given(node, { report: { ...word, state, epoch } });
    await say("n1", "prepared", 20);
    await say("n1", "preparing", 19);
    expect(reported()).to.equal("prepared");
    await say("n2", "preparing", 21);
    expect([...(known.parts.index.read("u")?.reports.keys() ?? [])]).to.deep.equal(["n1"]);
  });

  it("takes no more words of a node than a rollout has", async () => {
    const rollout = begun();
    await known.update(rollout);
    const word = { fence: fence(rollout), present: old, at: 1, state: "preparing" } as const;
    for (let epoch = 10; epoch < 50; epoch++) await given("n1", { report: { ...word, epoch } });
    const refused = await given("n1", { report: { ...word, epoch: 50 } }).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Busy);
  });
});
