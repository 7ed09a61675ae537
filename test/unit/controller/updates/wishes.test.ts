import { expect } from "chai";
import { Refused } from "#controller/cluster/refused.ts";
import { wishFor } from "#controller/updates/wishes.ts";
import type { WishAction } from "#rollout/records.ts";
import { targetIdOf } from "#rollout/spec.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { old, SteppedRollout } from "#support/stepped-rollout.ts";

const by = { by: "operator ann", at: "2026-01-01T00:00:00Z" };
const nodes = ["n1", "n2"];

describe("what is asked of a controller about a rollout", () => {
  let known: KnownUpdates;
  beforeEach(async () => (known = await new KnownUpdates().nodes(...nodes)));
  afterEach(() => known.stop());
  /** How it is answered: `created`, or why it is refused. */
  const asked = async (rollout: SteppedRollout, action: WishAction = "rollback"): Promise<string> => {
    const update = await known.update(rollout);
    try {
      return (await wishFor(known.parts, update, action, by)).result;
    } catch (error) {
      if (error instanceof Refused) return `${error.message} [${error.code}]`;
      throw error;
    }
  };
  const begun = (more: object = {}): SteppedRollout => new SteppedRollout({ nodes, ...more }).settle().confirm();

  it("what has ended is not cancelled", async () => {
    const ended = begun().finish("n1").wish("cancel");
    expect(await asked(ended, "cancel")).to.equal("“u” is cancelled: there is nothing to cancel [UPDATE_ENDED]");
  });

  it("what has no canary is not promoted", async () =>
    expect(await asked(begun(), "promote")).to.equal("“u” has no canary to promote [UPDATE_ENDED]"));

  it("a rollback is refused when no node was begun: cancelled before its approval, or all of them ran the target", async () => {
    const waiting = new SteppedRollout({ nodes, spec: { approvalPolicy: "manual" } }).settle();
    expect(await asked(waiting.wish("cancel"))).to.equal(
      "“u” is cancelled, and no node was begun: there is nothing to roll back [UPDATE_ENDED]",
    );
    const there = new SteppedRollout({ nodes }).settle();
    for (const id of nodes) there.report(id, "fenced", { present: there.view.target });
    expect(await asked(there)).to.match(/^“u” is succeeded, and no node was begun/);
  });

  it("a rollback is taken of what was begun, and before it has ended", async () => {
    expect(await asked(begun().finish("n1").wish("cancel"))).to.equal("created");
    known.stop();
    known = await new KnownUpdates().nodes(...nodes);
    expect(await asked(begun())).to.equal("created");
  });

  /** A commit of NixOS systems that somebody approved, with how a node that runs it tells so. */
  const approved = () => {
    const target = { flakeRef: "github:example/systems", flakeRev: "0123456789".repeat(4) };
    const rollout = new SteppedRollout({ nodes, spec: { target, approvalPolicy: "manual" } }).set({ isApproved: true });
    const id = targetIdOf({ spec: rollout.view.spec });
    rollout
      .set({ target: { id, version: "" } })
      .settle()
      .confirm();
    return { rollout, there: { present: { id, version: "", generation: 2 }, previous: old } };
  };

  it("a rollback is taken when it was applied once more, and nodes have the target by the generation before", async () => {
    const { rollout, there } = approved();
    for (const id of nodes) rollout.report(id, "prepared").report(id, "activated", there);
    rollout.set({ generation: 2 });
    for (const id of nodes) rollout.report(id, "fenced", there);
    expect(rollout.progress).to.deep.include({ phase: "succeeded", generation: 2, started: [] });
    expect(await asked(rollout)).to.equal("created");
  });

  it("a rollback is taken of one that was cancelled before it began, too, as long as a node has what came before", async () => {
    for (const isThere of [true, false]) {
      known.stop();
      known = await new KnownUpdates().nodes(...nodes);
      const { rollout, there } = approved();
      rollout.report("n1", "prepared").report("n1", "activated", there).wish("cancel");
      if (!isThere) rollout.report("n1", "activated", { ...there, present: old });
      rollout.set({ generation: 2, isApproved: false, wishes: {} }).wish("cancel", { generation: 2 });
      expect(rollout.progress).to.deep.include({ phase: "cancelled", generation: 2, waves: [] });
      const said = isThere ? /^created$/ : /^“u” is cancelled, and no node was begun/;
      expect(await asked(rollout)).to.match(said);
    }
  });

  it("a rollback is taken after a takeover, since the former owner may have begun what is not known here", async () => {
    // Nobody answers the new owner, which gives them up.
    const taken = new SteppedRollout({ nodes }).settle().takeOver("c2").wish("cancel").after(700);
    expect(taken.progress).to.deep.include({ phase: "cancelled", epoch: 2, started: [] });
    expect(await asked(taken)).to.equal("created");
  });
});
