import { expect } from "chai";
import { viewUpdate } from "#controller/updates/update-views.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { SteppedRollout } from "#support/stepped-rollout.ts";

const manual = { approvalPolicy: "manual" };

describe("an update as a controller tells of it", () => {
  let known: KnownUpdates;
  beforeEach(async () => {
    known = await new KnownUpdates().nodes("n1", "n2");
  });
  afterEach(() => known.stop());
  const phasesOf = async (rollout: SteppedRollout): Promise<string> =>
    viewUpdate(known.parts, await known.update(rollout))
      .nodeStatus.map(({ hostname, phase, since }) => `${hostname}=${phase}${since === "" ? "" : " since"}`)
      .join(", ");

  it("waits with its nodes until somebody approves it; once cancelled, no node waits any more", async () => {
    const rollout = new SteppedRollout({ nodes: ["n1", "n2"], spec: manual }).settle();
    expect(await phasesOf(rollout)).to.equal("n1=pending, n2=pending");
    expect(await phasesOf(rollout.wish("cancel"))).to.equal("n1=cancelled since, n2=cancelled since");
  });

  it("does not show a node as under way that was removed from the cluster before it was touched", async () => {
    const rollout = new SteppedRollout({ nodes: ["n1", "n3"] }).settle().confirm().finish("n1");
    expect(rollout.phases).to.equal("n1=succeeded n3=preparing");
    const { n3: _, ...left } = Object.fromEntries(rollout.view.nodes);
    rollout.set({ nodes: new Map(Object.entries(left)) });
    expect(rollout.progress.phase).to.equal("succeeded");
    expect(await phasesOf(rollout)).to.equal("n1=succeeded since, n3=cancelled since");
  });
});
