import { expect } from "chai";
import { keys } from "#controller/cluster/registers.ts";
import { viewUpdate } from "#controller/updates/update-views.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { SteppedRollout } from "#support/stepped-rollout.ts";

const manual = { approvalPolicy: "manual" };

describe("a controller's view of an update", () => {
  let known: KnownUpdates;
  beforeEach(async () => (known = await new KnownUpdates().nodes("n1", "n2")));
  afterEach(() => known.stop());
  const phasesOf = async (rollout: SteppedRollout): Promise<string> =>
    viewUpdate(known.parts, await known.update(rollout))
      .nodeStatus.map(({ hostname, phase, since }) => `${hostname}=${phase}${since === "" ? "" : " since"}`)
      .join(", ");

  it("shows nodes as pending until approval, and as cancelled once the update is", async () => {
    const rollout = new SteppedRollout({ nodes: ["n1", "n2"], spec: manual }).settle();
    expect(await phasesOf(rollout)).to.equal("n1=pending, n2=pending");
    expect(await phasesOf(rollout.request("cancel"))).to.equal("n1=cancelled since, n2=cancelled since");
  });

  it("shows an approval only for the manifest and the nodes that were approved", async () => {
    const waiting = new SteppedRollout({ nodes: ["n1"], spec: manual }).settle();
    const update = await known.update(waiting);
    const view = () => viewUpdate(known.parts, known.parts.index.read("u") ?? update);
    const { generation, hash } = view();
    const approve = { generation, hash, by: "operator ann", at: "2026-01-01T00:00:00Z" };
    await known.parts.records.put([{ key: keys.update("u").approved, value: approve }]);
    expect(view()).to.include({ approvalStatus: "approved", approvedBy: "operator ann" });
    await known.nodes("n9");
    expect(view()).to.include({ approvalStatus: "awaiting_approval" }).and.not.have.property("approvedBy");
  });

  it("awaits approval of a reboot that a preparation found, with the policy auto-non-disruptive", async () => {
    const spec = { approvalPolicy: "auto-non-disruptive" };
    const rollout = new SteppedRollout({ nodes: ["n1"], spec }).settle().confirm();
    const status = async () => viewUpdate(known.parts, await known.update(rollout)).approvalStatus;
    expect(await status()).to.equal("approved");
    rollout.report("n1", "prepared", { needsReboot: true });
    expect(await status()).to.equal("awaiting_approval");
  });

  it("shows a node as cancelled that was removed from the cluster before it began", async () => {
    const rollout = new SteppedRollout({ nodes: ["n1", "n3"] }).settle().confirm().finish("n1");
    expect(rollout.phases).to.equal("n1=succeeded n3=preparing");
    const { n3: _, ...left } = Object.fromEntries(rollout.view.nodes);
    rollout.set({ nodes: new Map(Object.entries(left)) });
    expect(rollout.progress.phase).to.equal("succeeded");
    expect(await phasesOf(rollout)).to.equal("n1=succeeded since, n3=cancelled since");
  });
});
