import { expect } from "chai";
import type { AcceptedBodyOf } from "#api/methods.ts";
import { Refused } from "#controller/cluster/refused.ts";
import { keys } from "#controller/cluster/registers.ts";
import { answerHook, attendUpdate, takeOver, noteRequest } from "#controller/updates/operator-requests.ts";
import { makePlan } from "#controller/updates/plan-update.ts";
import { inputOf } from "#controller/updates/known-input.ts";
import { nextEpoch } from "#controller/updates/update-records.ts";
import { viewUpdate } from "#controller/updates/update-views.ts";
import { verifyStatement } from "#pki/statement.ts";
import { decide } from "#rollout/decide.ts";
import type { RequestAction } from "#rollout/records.ts";
import { createTestCluster, type TestCluster } from "#support/cluster.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { signOwner } from "#support/signed-update.ts";
import { SteppedRollout } from "#support/stepped-rollout.ts";

const nodes = ["n1", "n2"];
let known: KnownUpdates;
const read = () => known.parts.index.read("u") ?? expect.fail("the update is unknown");
const shown = () => viewUpdate(known.parts, read());

/** The result of a request, or the message and code of its refusal. */
async function outcome(request: Promise<{ readonly result: string }>): Promise<string> {
  return request.then(
    ({ result }) => result,
    (error: unknown) => {
      if (error instanceof Refused) return `${error.message} [${error.code}]`;
      throw error;
    },
  );
}

beforeEach(async () => (known = await new KnownUpdates().nodes(...nodes)));
afterEach(() => known.stop());

describe("an operator's request about a rollout", () => {
  const by = { by: "operator ann", at: "2026-01-01T00:00:00Z" };
  const request = async (rollout: SteppedRollout, action: RequestAction = "rollback"): Promise<string> =>
    outcome(noteRequest(known.parts, await known.update(rollout), action, by));
  const startedRollout = (name = "u"): SteppedRollout => new SteppedRollout({ nodes }).set({ name }).confirm();
  const noneBegun = /and no node was begun: there is nothing to roll back \[UPDATE_ENDED\]$/;

  it("is refused if the rollout has ended, or has no canary to promote", async () => {
    const ended = startedRollout().finish("n1").request("cancel");
    expect(await request(ended, "cancel")).to.equal("“u” is cancelled: there is nothing to cancel [UPDATE_ENDED]");
    expect(await request(startedRollout("v"), "promote")).to.equal("“v” has no canary to promote [UPDATE_ENDED]");
  });

  it("to roll back is refused if no node was begun", async () => {
    const waiting = new SteppedRollout({ nodes, spec: { approvalPolicy: "manual" } }).settle();
    expect(await request(waiting.request("cancel"))).to.match(noneBegun);
    const upToDate = new SteppedRollout({ nodes }).set({ name: "v" });
    for (const id of nodes) upToDate.report(id, "fenced", { present: upToDate.view.target });
    expect(await request(upToDate)).to.match(noneBegun);
  });

  it("to roll back is recorded for a rollout with begun nodes, ended or not", async () => {
    expect(await request(startedRollout().finish("n1").request("cancel"))).to.equal("created");
    expect(await request(startedRollout("v"))).to.equal("created");
  });
});

describe("the bastion's answer to a hook", () => {
  const spec = {
    drain: { enabled: true, command: "drain", after: { command: "undrain" } },
    healthGates: [
      { name: "a", command: "a" },
      { name: "b", command: "b" },
    ],
  };
  let seq: number;
  beforeEach(async () => {
    const rollout = new SteppedRollout({ nodes: ["n1"], spec }).settle().confirm().report("n1", "prepared");
    rollout.answer("n1", "drain", true).report("n1", "activated");
    await known.update(rollout);
    seq = rollout.row("n1").seq;
  });

  /** The response to the answer, and the hook that the node waits for then. */
  const answer = async (hook: string, more: Partial<AcceptedBodyOf<"answerHook">> = {}): Promise<unknown> => [
    await outcome(answerHook(known.parts, read(), { node: "n1", generation: 1, seq, hook, ok: true, ...more })),
    shown().nodeStatus[0]?.hook,
  ];
  const refused = (hook: string): string => `“${hook}” is not asked of the bastion for n1 now [UPDATE_NOT_ASKED]`;

  it("counts only for the hook that it names, also if repeated", async () => {
    expect(await answer("gate a")).to.deep.equal(["created", "gate b"]);
    expect(await answer("gate a")).to.deep.equal(["unchanged", "gate b"]);
    expect(await answer("gate b")).to.deep.equal(["created", "undrain"]);
    expect(await answer("gate a")).to.deep.equal(["unchanged", "undrain"]);
  });

  it("does not count for another owner's order with the same number", async () => {
    for (const owner of [
      { id: "c2", epoch: 1 },
      { id: "c1", epoch: 2 },
    ])
      expect(await answer("gate a", { owner })).to.deep.equal([refused("gate a"), "gate a"]);
    expect(await answer("gate a", { owner: { id: "c1", epoch: 1 } })).to.deep.equal(["created", "gate b"]);
  });

  it("is refused if the node does not wait for the hook, or the hook has another answer", async () => {
    for (const hook of ["gate b", "undrain", "drain", "gate none", ""])
      expect(await answer(hook), hook).to.deep.equal([refused(hook), "gate a"]);
    for (const more of [{ seq: seq - 1 }, { seq: seq + 1 }, { generation: 2 }, { node: "n9" }])
      expect(await answer("gate a", more), JSON.stringify(more)).to.have.property("1", "gate a");
    expect(await answer("gate a")).to.deep.equal(["created", "gate b"]);
    const other = await answer("gate a", { ok: false, message: "no route to host" });
    expect(other).to.deep.equal([refused("gate a"), "gate b"]);
  });
});

describe("the process that runs an update's hooks", () => {
  const ann = { by: "operator ann", host: "bastion-1", at: "1970-01-01T00:16:40.000Z" };
  beforeEach(async () => {
    const spec = { drain: { enabled: true, command: "drain" } };
    await known.update(new SteppedRollout({ nodes: ["n1"], spec }).settle().confirm().report("n1", "prepared"));
  });
  const attend = (host: string, ended = false, by = ann.by): Promise<string> =>
    outcome(attendUpdate(known.parts, read(), { host, ended }, by));
  const planned = () => makePlan(known.parts, { name: "u", spec: read().statement.spec }).attendance;

  it("is recorded once when it begins, and shown where the update waits for the bastion", async () => {
    const waits = "the bastion: drain of n1 (unattended: kcore update cluster run-hooks u)";
    expect([shown().attendance, planned(), shown().waits]).to.deep.equal([undefined, undefined, waits]);
    expect([await attend("bastion-1"), await attend("bastion-1")]).to.deep.equal(["created", "unchanged"]);
    expect([shown().attendance, planned()]).to.deep.equal([ann, ann]);
    expect(decide(inputOf(known.parts, read())).progress?.waits).to.equal(
      "the bastion: drain of n1 (attended by operator ann on bastion-1 since 1970-01-01T00:16:40.000Z, " +
        "unless that process has ended: kcore update cluster run-hooks u)",
    );
    expect(await attend("bastion-2", false, "operator bob")).to.equal("updated");
    expect(shown().attendance).to.deep.include({ by: "operator bob", host: "bastion-2" });
  });

  it("ends its own record only, not that of a process that took over", async () => {
    await attend("bastion-1");
    await attend("bastion-2");
    expect(await attend("bastion-1", true)).to.equal("unchanged");
    expect(shown().attendance).to.deep.include({ host: "bastion-2" });
    expect(await attend("bastion-2", true)).to.equal("deleted");
    expect([shown().attendance, known.parts.records.replica.get(keys.update("u").attendance)?.text]).to.deep.equal([
      undefined,
      undefined,
    ]);
  });
});

describe("a takeover", () => {
  let cluster: TestCluster;
  before(async () => (cluster = await createTestCluster()));
  after(() => cluster.remove());
  beforeEach(() => known.update(new SteppedRollout({ nodes: ["n1"] }).settle()));

  const take = (owner: string, epoch: number, by = cluster, name = "u"): Promise<unknown> =>
    takeOver(
      {
        ...known.parts,
        clock: Date.now,
        verify: (signed, now) => verifyStatement(signed, { ...cluster.authority, now }),
      },
      read(),
      { ownership: signOwner(by, name, { owner, epoch }) },
      "operator ann",
    ).catch((error: unknown) => error);

  it("sets the signed owner at whichever controller receives it, and can be repeated", async () => {
    expect(await take("c2", 2)).to.deep.equal({ owner: "c2", epoch: 2 });
    const { owner } = read();
    expect(owner).to.include({ owner: "c2", epoch: 2, by: "operator ann" });
    expect(await take("c2", 2)).to.deep.equal({ owner: "c2", epoch: 2 });
    expect(read().owner.signed).to.equal(owner.signed);
    // Another owner of the present or an earlier epoch is refused.
    for (const epoch of [2, 1]) expect(await take("c3", epoch)).to.deep.include({ status: 409, code: "UPDATE_OWNED" });
    expect(read().owner).to.include({ owner: "c2", epoch: 2 });
  });

  it("is refused if another cluster's bastion signed it, or for another update", async () => {
    const stranger = await createTestCluster();
    try {
      expect(await take("c2", 2, stranger)).to.have.nested.property("problems[0].code", "UPDATE_UNSIGNED");
    } finally {
      await stranger.remove();
    }
    expect(await take("c2", 2, cluster, "v")).to.have.property("code", "API_INVALID");
    expect(read().owner).to.include({ owner: "c1", epoch: 1 });
  });

  it("has an epoch above that of every owner that a node of the update obeys", async () => {
    expect(nextEpoch(read())).to.equal(2);
    const rollout = new SteppedRollout({ nodes: ["n1"] }).settle();
    const fence = { name: "u", epoch: 7, owner: "bastion-1", generation: 1, seq: 1 };
    expect(nextEpoch(await known.update(rollout.report("n1", "fenced", { fence })))).to.equal(8);
    const others = { ...fence, name: "v", epoch: 9 };
    expect(nextEpoch(await known.update(rollout.report("n1", "fenced", { fence: others })))).to.equal(2);
  });
});
