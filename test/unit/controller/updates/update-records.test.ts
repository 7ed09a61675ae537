import { expect } from "chai";
import { keys } from "#controller/cluster/registers.ts";
import { isBundleNeeded } from "#controller/updates/bundle-fetcher.ts";
import type { UpdateRecords } from "#controller/updates/update-records.ts";
import type { UpdatePhase } from "#rollout/records.ts";
import { statementOf } from "#support/update-world.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { SteppedRollout } from "#support/stepped-rollout.ts";

describe("the updates that a controller knows", () => {
  let known: KnownUpdates;
  beforeEach(async () => {
    known = await new KnownUpdates().nodes("n1");
    await known.update(new SteppedRollout({ nodes: ["n1"] }));
  });
  afterEach(() => known.stop());

  const names = (): readonly string[] => Array.from(known.parts.index.all(), ({ name }) => name);
  const write = (key: string, value: unknown): Promise<string> => known.parts.records.write([{ key, value }]);

  it("leave out an update with a malformed statement, and keep the others", async () => {
    const { value } = known.parts.index.read("u")?.head ?? expect.fail("the update is unknown");
    for (const [index, statement] of ["", "{", "null", "[]"].entries()) {
      const of = keys.update(`bad-${index}`);
      await write(of.head, { ...value, signed: { ...value.signed, statement } });
      await write(of.owner, { epoch: 1, owner: "c2" });
    }
    expect(names()).to.deep.equal(["u"]);
  });

  it("leave out answers under a malformed name of a hook", async () => {
    const answer = { epoch: 1, owner: "c1", generation: 1, seq: 1, ok: true };
    await write("update/u/hook/n1/%", answer);
    await write(keys.update("u").hook("n1", "gate web"), answer);
    expect([...(known.parts.index.read("u")?.answers.keys() ?? [])]).to.deep.equal(["n1/gate web"]);
  });

  it("need their bundle until they have ended", () => {
    const statement = statementOf("0.2.0");
    const needed = (phase: UpdatePhase | undefined, generation = 1): boolean => {
      const progress = phase && { value: { phase, generation: 1 } };
      const update = { statement, head: { value: { generation } }, requests: {}, progress } as unknown as UpdateRecords;
      return isBundleNeeded({ all: () => [update] }, statement.bundle?.sha256 ?? "");
    };
    expect([needed(undefined), needed("rolling_out"), needed("succeeded", 2)]).to.deep.equal([true, true, true]);
    for (const phase of ["succeeded", "failed", "cancelled", "rolled_back"] as const)
      expect(needed(phase), phase).to.equal(false);
  });
});
