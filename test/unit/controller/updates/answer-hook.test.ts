import { expect } from "chai";
import type { AcceptedBodyOf } from "#api/methods.ts";
import { Refused } from "#controller/cluster/refused.ts";
import { answerHook } from "#controller/updates/answer-hook.ts";
import { viewUpdate } from "#controller/updates/update-views.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { SteppedRollout } from "#support/stepped-rollout.ts";

const spec = {
  drain: { enabled: true, command: "drain", after: { command: "undrain" } },
  healthGates: [
    { name: "a", command: "a" },
    { name: "b", command: "b" },
  ],
};

describe("an answer of the bastion", () => {
  let known: KnownUpdates;
  let seq: number;
  beforeEach(async () => {
    known = await new KnownUpdates().nodes("n1");
    const rollout = new SteppedRollout({ nodes: ["n1"], spec }).settle().confirm().report("n1", "prepared");
    rollout.answer("n1", "drain", true).report("n1", "activated");
    await known.update(rollout);
    seq = rollout.row("n1").seq;
  });
  afterEach(() => known.stop());

  const read = () => known.parts.index.read("u") ?? expect.fail("it is not known");
  const asked = (): string | undefined => viewUpdate(known.parts, read()).nodeStatus[0]?.hook;
  /** How it is taken, or why it is not; and what is asked for then. */
  const answer = async (hook: string, more: Partial<AcceptedBodyOf<"answerHook">> = {}): Promise<unknown> => {
    try {
      const { result } = await answerHook(known.parts, read(), {
        node: "n1",
        generation: 1,
        seq,
        hook,
        ok: true,
        ...more,
      });
      return [result, asked()];
    } catch (error) {
      if (error instanceof Refused) return [`${error.message} [${error.code}]`, asked()];
      throw error;
    }
  };

  it("counts for the hook that it names alone, however often it comes", async () => {
    expect(asked()).to.equal("gate a");
    expect(await answer("gate a")).to.deep.equal(["created", "gate b"]);
    expect(await answer("gate a")).to.deep.equal(["unchanged", "gate b"]);
    expect(await answer("gate a")).to.deep.equal(["unchanged", "gate b"]);
    expect(await answer("gate b")).to.deep.equal(["created", "undrain"]);
    expect(await answer("gate a")).to.deep.equal(["unchanged", "undrain"]);
  });

  it("does not count for another owner's order of the same number", async () => {
    for (const owner of [
      { id: "c2", epoch: 1 },
      { id: "c1", epoch: 2 },
    ])
      expect(await answer("gate a", { owner })).to.deep.equal([
        "“gate a” is not asked of the bastion for n1 now [UPDATE_NOT_ASKED]",
        "gate a",
      ]);
    expect(await answer("gate a", { owner: { id: "c1", epoch: 1 } })).to.deep.equal(["created", "gate b"]);
  });

  it("is refused when nobody asks for its hook now, or that has another answer", async () => {
    const refused = (hook: string): string => `“${hook}” is not asked of the bastion for n1 now [UPDATE_NOT_ASKED]`;
    for (const hook of ["gate b", "undrain", "drain", "gate none", ""])
      expect(await answer(hook), hook).to.deep.equal([refused(hook), "gate a"]);
    for (const more of [{ seq: seq - 1 }, { seq: seq + 1 }, { generation: 2 }, { node: "n9" }])
      expect(await answer("gate a", more), JSON.stringify(more)).to.have.property("1", "gate a");
    expect(await answer("gate a")).to.deep.equal(["created", "gate b"]);
    const other = await answer("gate a", { ok: false, message: "no route to host" });
    expect(other).to.deep.equal([refused("gate a"), "gate b"]);
  });
});
