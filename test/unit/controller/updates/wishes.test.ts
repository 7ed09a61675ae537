import { expect } from "chai";
import { Refused } from "#controller/cluster/refused.ts";
import { wishFor } from "#controller/updates/wishes.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { SteppedRollout } from "#support/stepped-rollout.ts";

const by = { by: "operator ann", at: "2026-01-01T00:00:00Z" };
const nodes = ["n1", "n2"];

describe("a rollback that is asked of a controller", () => {
  let known: KnownUpdates;
  beforeEach(() => {
    known = new KnownUpdates();
  });
  afterEach(() => known.stop());
  /** How it is answered: `created`, or why it is refused. */
  const asked = async (rollout: SteppedRollout): Promise<string> => {
    const update = await known.update(rollout);
    try {
      return (await wishFor(known.parts.records, update, "rollback", by)).result;
    } catch (error) {
      if (error instanceof Refused) return `${error.message} [${error.code}]`;
      throw error;
    }
  };
  const begun = (more: object = {}): SteppedRollout => new SteppedRollout({ nodes, ...more }).settle().confirm();

  it("is refused when no node was begun: cancelled before its approval, or all of them ran the target", async () => {
    const waiting = new SteppedRollout({ nodes, spec: { approvalPolicy: "manual" } }).settle();
    expect(await asked(waiting.wish("cancel"))).to.equal(
      "“u” is cancelled, and no node was begun: there is nothing to roll back [UPDATE_ENDED]",
    );
    const there = new SteppedRollout({ nodes }).settle();
    for (const id of nodes) there.report(id, "fenced", { present: there.view.target });
    expect(await asked(there)).to.match(/^“u” is succeeded, and no node was begun/);
  });

  it("is taken of what was begun, and before it has ended", async () => {
    expect(await asked(begun().finish("n1").wish("cancel"))).to.equal("created");
    known.stop();
    known = new KnownUpdates();
    expect(await asked(begun())).to.equal("created");
  });

  it("is taken after a takeover, since the former owner may have begun what is not known here", async () => {
    // Nobody answers the new owner, which gives them up.
    const taken = new SteppedRollout({ nodes }).settle().takeOver("c2").wish("cancel").after(700);
    expect(taken.progress).to.deep.include({ phase: "cancelled", epoch: 2, started: [] });
    expect(await asked(taken)).to.equal("created");
  });
});
