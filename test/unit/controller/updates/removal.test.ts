import { expect } from "chai";
import { Refused } from "#controller/cluster/refused.ts";
import { keys } from "#controller/cluster/registers.ts";
import { attendUpdate } from "#controller/updates/operator-requests.ts";
import { makePlan } from "#controller/updates/plan-update.ts";
import { removeOld, removeSettledUpdate } from "#controller/updates/removal.ts";
import { manageUpdates, type UpdatesParts } from "#controller/updates/updates.ts";
import type { ViewParts } from "#controller/updates/update-views.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { aSpec, SteppedRollout, target } from "#support/stepped-rollout.ts";

const nodes = ["n1", "n2"];
const dayMs = 86_400_000;

describe("the removal of ended updates", () => {
  let known: KnownUpdates;
  beforeEach(async () => (known = await new KnownUpdates().nodes(...nodes)));
  afterEach(() => known.stop());

  const startedRollout = (day = 0): SteppedRollout => {
    const rollout = new SteppedRollout({ nodes });
    return rollout.set({ now: rollout.view.now + day * dayMs }).confirm();
  };
  const done = (name: string, day = 0): SteppedRollout =>
    startedRollout(day).set({ name }).confirm().finish("n1").finish("n2");
  const failed = (name: string, day = 0): SteppedRollout =>
    startedRollout(day)
      .set({ name })
      .confirm()
      .report("n1", "failed", { failure: { kind: "build", message: "no" } });
  const names = (): string[] => Array.from(known.parts.index.all(), ({ name }) => name);
  const keysOf = (name: string): string[] =>
    Array.from(known.parts.records.replica.entries(keys.update(name).all), ([key]) => key);
  /** The result of a removal: `deleted`, or message and code of the refusal. */
  const removed = async (name: string, parts: Partial<ViewParts> = {}): Promise<string> => {
    const update = known.parts.index.read(name);
    if (!update) return "unknown";
    try {
      return (await removeSettledUpdate({ ...known.parts, ...parts }, update, "operator ann")).result;
    } catch (error) {
      if (error instanceof Refused) return `${error.message} [${error.code}]`;
      throw error;
    }
  };
  const tidyAt = (day: number, parts: Partial<ViewParts> = {}): Promise<void> =>
    removeOld({ ...known.parts, clock: () => 1_000_000 + day * dayMs, ...parts });

  it("deletes all registers by command, and late writes do not bring the update back", async () => {
    await attendUpdate(known.parts, await known.update(done("u")), { host: "bastion-1" }, "operator ann");
    await known.update(done("v", 1));
    const late = keysOf("u").map((key) => ({ key, value: known.parts.records.replica.get(key)?.text }));
    expect(late.length).to.equal(8);
    expect(await removed("u")).to.equal("deleted");
    expect(keysOf("u")).to.deep.equal([keys.update("u").removed]);
    expect(names()).to.deep.equal(["v"]);
    // Some deletions refuse late writes; the next cleanup deletes the other registers.
    for (const { key, value } of late)
      await known.parts.records.write([{ key, value: JSON.parse(value ?? "") }]).catch(() => undefined);
    expect(names()).to.deep.equal(["v"]);
    await tidyAt(2);
    expect(keysOf("u")).to.deep.equal([keys.update("u").removed]);
  });

  it("blocks the name for ever, because nodes would refuse its first epoch", async () => {
    await known.update(done("u"));
    await known.update(done("v", 1));
    await removed("u");
    const { blockers } = makePlan(known.parts, { name: "u", spec: aSpec() });
    expect(blockers).to.include(
      "“u” was removed at 1970-01-01T00:16:40.000Z, and its name is never used again: remove this manifest, or give it another name",
    );
  });

  const kept: Readonly<Record<string, readonly [SteppedRollout, string]>> = {
    "waits for approval": [
      new SteppedRollout({ nodes, spec: { approvalPolicy: "manual" } }).settle(),
      "it is not over (pending)",
    ],
    "is under way": [startedRollout(), "it is not over (rolling_out)"],
    "is to be rolled back": [done("u").request("cancel").request("rollback"), "it is not over (rolling_back)"],
    "has a node at work": [failed("u").report("n1", "rolling_back"), "n1 is rolling_back"],
    "alone shows what a node runs": [done("u"), "no later update tells what n1 runs"],
    "failed last on a node": [failed("u"), "no later update tells what n1 runs"],
  };
  for (const [what, [rollout, why]] of Object.entries(kept))
    it(`is refused to operator and owner for an update that ${what}`, async () => {
      await known.update(rollout);
      expect(await removed("u")).to.equal(`“u” is not removed: ${why} [UPDATE_BLOCKED]`);
      await tidyAt(10_000);
      expect(names()).to.deep.equal(["u"]);
    });

  it("is done by the owner only, and not by age while a controller is unreachable", async () => {
    await known.update(done("u"));
    await known.update(done("v", 1));
    const controllers = { ...known.parts.controllers, isMember: () => true };
    expect(await removed("u", { controllerId: "c2" })).to.match(/\[UPDATE_OWNED\]$/);
    await tidyAt(10_000, { controllerId: "c2", controllers });
    await tidyAt(10_000, { isHeard: () => false });
    expect(names()).to.deep.equal(["u", "v"]);
    await tidyAt(10_000, { controllerId: "c2" });
    expect(names(), "the owner is no member any more").to.deep.equal(["v"]);
  });

  it("keeps the newest 20 for a year, and deletes an update that was cancelled before it began", async () => {
    for (let week = 0; week < 25; week++) await known.update(done(`u${week}`, 7 * week));
    await known.update(
      new SteppedRollout({ nodes, spec: { approvalPolicy: "manual" } }).settle().set({ name: "x" }).request("cancel"),
    );
    expect(await removed("x")).to.equal("deleted");
    await tidyAt(7 * 25);
    expect(names().length).to.equal(20);
    expect(names()).to.not.include("u4");
    await tidyAt(7 * 20 + 366);
    expect(names().toSorted()).to.deep.equal(["u20", "u21", "u22", "u23", "u24"].slice(1));
  });

  it("limits the number of updates that fail on the same node", async () => {
    await known.update(done("u0"));
    for (let week = 1; week < 30; week++) await known.update(failed(`u${week}`, 7 * week));
    await tidyAt(7 * 30);
    expect(names().length).to.equal(21);
    expect(names(), "the last that succeeded").to.include("u0");
  });

  it("keeps an update that failed and left its target on a node until another has succeeded there", async () => {
    const failure = { kind: "rollback", message: "no", stuck: true } as const;
    // The target of a statement without a bundle has no id.
    const present = { ...target, id: "" };
    await known.update(startedRollout().set({ name: "u" }).confirm().report("n1", "failed", { failure, present }));
    for (let week = 1; week < 25; week++) await known.update(failed(`u${week}`, 7 * week));
    await tidyAt(7 * 25);
    expect(names()).to.include("u");
    await known.update(done("v", 7 * 26));
    await tidyAt(7 * 27);
    expect(names()).not.to.include("u");
  });

  it("is completed periodically after a crash left registers", async () => {
    const waiting: (() => void)[] = [];
    const after = (_: number, work: () => void) => (waiting.push(work), () => undefined);
    const parts = { ...known.parts, timers: { after }, bundles: { list: () => Promise.resolve([]) }, random: () => 0 };
    const updates = manageUpdates(parts as unknown as UpdatesParts);
    const pass = (): void => waiting.splice(0).forEach((work) => work());
    pass();
    await known.update(done("u"));
    const of = keys.update("u");
    await known.parts.records.write([{ key: of.removed, value: { at: "", by: "operator ann", owner: "c1" } }]);
    expect(names()).to.deep.equal([]);
    pass();
    await updates.stop();
    expect(keysOf("u")).to.deep.equal([of.removed]);
  });
});
