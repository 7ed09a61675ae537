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

describe("updates that are over", () => {
  let known: KnownUpdates;
  beforeEach(async () => (known = await new KnownUpdates().nodes(...nodes)));
  afterEach(() => known.stop());

  const begun = (day = 0, more: object = {}): SteppedRollout => {
    const rollout = new SteppedRollout({ nodes, ...more });
    return rollout.set({ now: rollout.view.now + day * dayMs }).confirm();
  };
  const done = (name: string, day = 0): SteppedRollout => begun(day).set({ name }).confirm().finish("n1").finish("n2");
  const failed = (name: string, day = 0): SteppedRollout =>
    begun(day)
      .set({ name })
      .confirm()
      .report("n1", "failed", { failure: { kind: "build", message: "no" } });
  const names = (): string[] => Array.from(known.parts.index.all(), ({ name }) => name);
  const keysOf = (name: string): string[] =>
    Array.from(known.parts.records.replica.entries(keys.update(name).all), ([key]) => key);
  /** The answer to a removal: `deleted`, or the refusal. */
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

  it("C6: one is removed by command with all its registers, and no late word of it brings it back", async () => {
    await attendUpdate(known.parts, await known.update(done("u")), { host: "bastion-1" }, "operator ann");
    await known.update(done("v", 1));
    const late = keysOf("u").map((key) => ({ key, value: known.parts.records.replica.get(key)?.text }));
    expect(late.length).to.equal(8);
    expect(await removed("u")).to.equal("deleted");
    expect(keysOf("u")).to.deep.equal([keys.update("u").removed]);
    expect(names()).to.deep.equal(["v"]);
    // A lasting deletion refuses a late write; the next cleanup deletes the others.
    for (const { key, value } of late)
      await known.parts.records.write([{ key, value: JSON.parse(value ?? "") }]).catch(() => undefined);
    expect(names()).to.deep.equal(["v"]);
    await tidyAt(2);
    expect(keysOf("u")).to.deep.equal([keys.update("u").removed]);
  });

  it("C6: the name of a removed one is never used again: nodes would refuse its first epoch", async () => {
    await known.update(done("u"));
    await known.update(done("v", 1));
    await removed("u");
    const { blockers } = makePlan(known.parts, { name: "u", spec: aSpec() });
    expect(blockers).to.include(
      "“u” was removed at 1970-01-01T00:16:40.000Z, and its name is never used again: remove this manifest, or give it another name",
    );
  });

  const kept: Readonly<Record<string, readonly [SteppedRollout, string]>> = {
    "that waits for its approval": [
      new SteppedRollout({ nodes, spec: { approvalPolicy: "manual" } }).settle(),
      "it is not over (pending)",
    ],
    "that is under way": [begun(), "it is not over (rolling_out)"],
    "that is to be taken back": [done("u").request("cancel").request("rollback"), "it is not over (rolling_back)"],
    "whose node is at work": [failed("u").report("n1", "rolling_back"), "n1 is rolling_back"],
    "that alone tells what a node runs": [done("u"), "no later update tells what n1 runs"],
    "that failed last on a node": [failed("u"), "no later update tells what n1 runs"],
  };
  for (const [what, [rollout, why]] of Object.entries(kept))
    it(`C6: neither an operator nor its owner removes one ${what}`, async () => {
      await known.update(rollout);
      expect(await removed("u")).to.equal(`“u” is not removed: ${why} [UPDATE_BLOCKED]`);
      await tidyAt(10_000);
      expect(names()).to.deep.equal(["u"]);
    });

  it("C6: one is removed by its owner alone, and not by its age while a controller is out of reach", async () => {
    await known.update(done("u"));
    await known.update(done("v", 1));
    const controllers = { ...known.parts.controllers, isMember: () => true };
    expect(await removed("u", { controllerId: "c2" })).to.match(/\[UPDATE_OWNED\]$/);
    await tidyAt(10_000, { controllerId: "c2", controllers });
    await tidyAt(10_000, { isHeard: () => false });
    expect(names()).to.deep.equal(["u", "v"]);
    await tidyAt(10_000, { controllerId: "c2" });
    expect(names(), "its owner is no member any more").to.deep.equal(["v"]);
  });

  it("C6: the newest 20 are kept for a year, and one that was cancelled before it began goes alone", async () => {
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

  it("C6: updates that fail on the same node week after week do not pile up", async () => {
    await known.update(done("u0"));
    for (let week = 1; week < 30; week++) await known.update(failed(`u${week}`, 7 * week));
    await tidyAt(7 * 30);
    expect(names().length).to.equal(21);
    expect(names(), "the last one that succeeded").to.include("u0");
  });

  it("C6: one that failed and left its target on a node stays until another one has succeeded there", async () => {
    const failure = { kind: "rollback", message: "no", stuck: true } as const;
    // The target of a statement without a bundle has no id.
    const present = { ...target, id: "" };
    await known.update(begun().set({ name: "u" }).confirm().report("n1", "failed", { failure, present }));
    for (let week = 1; week < 25; week++) await known.update(failed(`u${week}`, 7 * week));
    await tidyAt(7 * 25);
    expect(names()).to.include("u");
    await known.update(done("v", 7 * 26));
    await tidyAt(7 * 27);
    expect(names()).not.to.include("u");
  });

  it("C6: what a crash left of a removed one is deleted later", async () => {
    await known.update(done("u"));
    const of = keys.update("u");
    await known.parts.records.write([{ key: of.removed, value: { at: "", by: "operator ann", owner: "c1" } }]);
    expect(names()).to.deep.equal([]);
    await tidyAt(0);
    expect(keysOf("u")).to.deep.equal([of.removed]);
  });

  it("C6: a controller looks for such remains again and again", async () => {
    const waiting: (() => void)[] = [];
    const after = (_: number, work: () => void) => (waiting.push(work), () => undefined);
    const parts = { ...known.parts, timers: { after }, bundles: { list: () => Promise.resolve([]) }, random: () => 0 };
    const updates = manageUpdates(parts as unknown as UpdatesParts);
    const pass = (): void => waiting.splice(0).forEach((work) => work());
    pass();
    await known.update(done("u"));
    const of = keys.update("u");
    await known.parts.records.write([{ key: of.removed, value: { at: "", by: "operator ann", owner: "c1" } }]);
    pass();
    await updates.stop();
    expect(keysOf("u")).to.deep.equal([of.removed]);
  });
});
