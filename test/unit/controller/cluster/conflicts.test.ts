import { expect } from "chai";
import { ackConflict, listConflicts, takeLoser } from "#controller/cluster/conflicts.ts";
import { watchNodeNames } from "#controller/cluster/node-names.ts";
import { keys } from "#controller/cluster/registers.ts";
import { caller, Controllers } from "#support/cut-controllers.ts";
import { registrationOf } from "#support/controllers.ts";

const by = "operator ann";
const label = keys.node("n").label("tier");

/** Each controller's list of conflicts as “key winner losers”. */
function listed({ parts }: Controllers): string[][] {
  return parts.map(({ records, rejects }) =>
    listConflicts({ records, rejects }, watchNodeNames(records)).conflicts.map(
      ({ key, winner, loser, others = [] }) => `${key} ${[winner, loser, ...others].map(textOf).join(" ")}`,
    ),
  );
}

function textOf({ value }: { readonly value?: unknown }): string {
  return String((value as { value?: unknown } | null)?.value ?? value);
}

async function idOf(all: Controllers, at = 0): Promise<string> {
  const [conflict] = all.replicas[at]?.replica.conflicts() ?? [];
  return conflict?.id ?? "none";
}

/** Each controller, cut off from the others, sets the label to three values in turn. */
async function writeConcurrently(all: Controllers): Promise<void> {
  all.cut();
  for (const value of ["first", "second", "last"])
    for (const [place, nodes] of all.nodes.entries()) {
      await nodes.setLabels("n", { set: { tier: `${value} ${place}` }, remove: [] });
      await all.settle();
    }
  await all.heal();
}

describe("conflicts of the cluster", () => {
  it("F-28: are one per key with the last value of each side, and are acknowledged at every controller", async () => {
    const all = await Controllers.start(3);
    await writeConcurrently(all);
    const due = [`${label} last 2 last 1 last 0`];
    expect(listed(all)).to.deep.equal([due, due, due]);
    const [one] = all.parts;
    if (one) await ackConflict(one.records, (await idOf(all)).slice(0, 4));
    await all.settle();
    expect(listed(all)).to.deep.equal([[], [], []]);
    expect(all.nodes.map((nodes) => nodes.get("n").labels["tier"])).to.deep.equal(["last 2", "last 2", "last 2"]);
  });

  it("cannot be resolved to a value that this version could not write", async () => {
    const all = await Controllers.start(2);
    all.cut();
    await all.replicas[0]?.replica.write([{ key: label, value: { of: "a newer version" } }]);
    await all.settle();
    await all.nodes[1]?.setLabels("n", { set: { tier: "known" }, remove: [] });
    await all.heal();
    const [one] = all.parts;
    const refused = await takeLoser(one as NonNullable<typeof one>, await idOf(all), by).catch(
      (error: unknown) => error,
    );
    expect(refused).to.include({ status: 409, code: "CONFLICT_FINAL" });
    await all.settle();
    expect(all.nodes.map((nodes) => nodes.get("n").labels["tier"])).to.deep.equal(["known", "known"]);
  });

  it("can be resolved to the losing value", async () => {
    const all = await Controllers.start(2);
    await writeConcurrently(all);
    const [one] = all.parts;
    if (one) await takeLoser(one, await idOf(all), by);
    await all.settle();
    expect(listed(all)).to.deep.equal([[], []]);
    expect(all.nodes.map((nodes) => nodes.get("n").labels["tier"])).to.deep.equal(["last 0", "last 0"]);
  });

  it("S-7: of secrets show no values; secrets and write-once registers cannot be resolved to the losing value", async () => {
    const all = await Controllers.start(2);
    const [one] = all.parts;
    if (!one) throw new Error("unreachable");
    const kept = keys.update("u").owner;
    const secret = keys.object("Secret", "db");
    all.cut();
    for (const [place, { replica }] of all.replicas.entries())
      await replica.write([
        { key: kept, value: { epoch: 1, owner: `c${place}` } },
        { key: secret, value: { password: `hidden ${place}` } },
      ]);
    await all.heal();
    const open = one.records.replica.conflicts();
    expect(open.map(({ key }) => key)).to.deep.equal([secret, kept]);
    expect(JSON.stringify([open, listed(all)])).not.to.contain("hidden");
    expect(listed(all)[1]).to.include(`${secret} (secret) (secret)`);
    expect(await takeLoser(one, open[0]?.id ?? "", by).catch(String)).to.contain("the losing value is not given out");
    for (const { id } of open) {
      const refused = await takeLoser(one, id, by).catch((error: unknown) => error);
      expect(refused).to.include({ status: 409, code: "CONFLICT_FINAL" });
      const unknown = await takeLoser(one, id.slice(0, 3), by).catch((error: unknown) => error);
      expect(unknown).to.include({ code: "CONFLICT_UNKNOWN" });
    }
  });

  it("of approvals begin the next epoch when resolved", async () => {
    const all = await Controllers.start(2);
    all.cut();
    await all.nodes[0]?.setApproval("n", { state: "rejected", by });
    await all.settle();
    await all.nodes[1]?.setApproval("n", { state: "rejected", by: "operator bob" });
    await all.heal();
    const conflict = all.parts[0]?.records.replica.conflicts().find(({ key }) => key === keys.node("n").approval);
    if (all.parts[0]) await takeLoser(all.parts[0], conflict?.id ?? "none", by);
    expect(all.nodes[0]?.get("n")).to.include({ approval: "rejected", approvalEpoch: 2 });
  });

  it("include concurrent writes of a controller's membership", async () => {
    const all = await Controllers.start(2);
    all.cut();
    for (const [place, { replica }] of all.replicas.entries())
      await replica.write([{ key: keys.controller("c3").auth, value: { spki: `key ${place}` } }]);
    await all.heal();
    expect(all.replicas.map(({ replica }) => replica.conflicts().map(({ key }) => key))).to.deep.equal([
      [keys.controller("c3").auth],
      [keys.controller("c3").auth],
    ]);
  });

  it("keep the tombstone of a deletion until they are acknowledged", async () => {
    const all = await Controllers.start(2);
    all.cut();
    await all.nodes[0]?.setLabels("n", { set: { tier: "ssd" }, remove: [] });
    await all.heal();
    all.cut();
    await all.nodes[0]?.setLabels("n", { set: { tier: "nvme" }, remove: [] });
    await all.settle();
    await all.nodes[1]?.setLabels("n", { set: {}, remove: ["tier"] });
    await all.heal();
    for (let turn = 0; turn < 30; turn++) await all.settle();
    expect(listed(all)).to.deep.equal([[`${label} null nvme`], [`${label} null nvme`]]);
    const [one] = all.parts;
    if (one) await ackConflict(one.records, await idOf(all));
    for (let turn = 0; turn < 30; turn++) await all.settle();
    expect(listed(all)).to.deep.equal([[], []]);
    expect(all.replicas.map(({ replica }) => replica.status().tombstones)).to.deep.equal([0, 0]);
  });

  it("do not include registrations of a node at two controllers at the same time", async () => {
    const all = await Controllers.start(2);
    for (let turn = 0; turn < 5; turn++) {
      all.cut();
      for (const [place, nodes] of all.nodes.entries()) {
        const hostname = `n-${turn}-${place}`;
        const net = { interfaces: [{ name: hostname, mac: "02:00:00:00:00:01", addresses: [] }] };
        await nodes.register(caller, { ...registrationOf("n"), hostname, net } as never);
      }
      await all.heal();
    }
    expect(listed(all)).to.deep.equal([[], []]);
    expect(all.replicas.map(({ replica }) => [...replica.entries("conflict/")].length)).to.deep.equal([0, 0]);
  });
});
