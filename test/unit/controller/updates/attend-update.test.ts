import { expect } from "chai";
import { keys } from "#controller/cluster/registers.ts";
import { attendUpdate } from "#controller/updates/attend-update.ts";
import { viewOf } from "#controller/updates/owner-loop.ts";
import { planUpdate } from "#controller/updates/plan-update.ts";
import { knowNodes } from "#controller/updates/rollout-nodes.ts";
import { viewUpdate } from "#controller/updates/update-views.ts";
import { decide } from "#rollout/decide.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { SteppedRollout } from "#support/stepped-rollout.ts";

const spec = { drain: { enabled: true, command: "drain" } };
const key = keys.update("u").attendance;
const ann = { by: "operator ann", host: "bastion-1", at: "1970-01-01T00:16:40.000Z" };

describe("C7: who attends to an update", () => {
  let known: KnownUpdates;
  beforeEach(async () => {
    known = await new KnownUpdates().nodes("n1");
    await known.update(new SteppedRollout({ nodes: ["n1"], spec }).settle().confirm().report("n1", "prepared"));
  });
  afterEach(() => known.stop());

  const read = () => known.parts.index.read("u") ?? expect.fail("it is not known");
  const attend = async (host: string, ended = false, by = ann.by): Promise<string> =>
    (await attendUpdate(known.parts, read(), { host, ended }, by)).result;
  const shown = () => viewUpdate(known.parts, read()).attendance;
  const planned = () => planUpdate(known.parts, { name: "u", spec: read().statement.spec }).attendance;
  /** The wait as the owner writes it next. */
  const waits = (): string | undefined =>
    decide(viewOf(read(), knowNodes(known.parts), known.parts, known.parts.clock())).progress?.waits;

  it("is one register, written once for each process that begins to attend", async () => {
    expect([shown(), planned()]).to.deep.equal([undefined, undefined]);
    expect(await attend("bastion-1")).to.equal("created");
    expect([shown(), planned()]).to.deep.equal([ann, ann]);
    expect(await attend("bastion-1")).to.equal("unchanged");
    expect(await attend("bastion-2", false, "operator bob")).to.equal("updated");
    expect(shown()).to.deep.include({ by: "operator bob", host: "bastion-2" });
    expect(
      [...known.parts.records.replica.entries(keys.update("u").all)].filter(([name]) => name === key),
    ).to.have.length(1);
  });

  it("is told with the wait for the bastion, since when, and how another process begins", async () => {
    expect(read().progress?.value.waits).to.equal(
      "the bastion: drain of n1 (unattended: kcore update cluster attend u)",
    );
    await attend("bastion-1");
    expect(waits()).to.equal(
      "the bastion: drain of n1 (attended by operator ann on bastion-1 since 1970-01-01T00:16:40.000Z, " +
        "unless that process has ended: kcore update cluster attend u)",
    );
  });

  it("ends with the process, and not with one that another took over from", async () => {
    await attend("bastion-1");
    await attend("bastion-2");
    expect(await attend("bastion-1", true)).to.equal("unchanged");
    expect(shown()).to.deep.include({ host: "bastion-2" });
    expect(await attend("bastion-2", true)).to.equal("deleted");
    expect([shown(), known.parts.records.replica.get(key)?.text]).to.deep.equal([undefined, undefined]);
  });
});
