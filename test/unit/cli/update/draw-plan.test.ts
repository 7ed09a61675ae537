import { expect } from "chai";
import type { PlannedNode, UpdatePlan } from "#api/update-schemas.ts";
import { nextSteps } from "#cli/update/draw-update.ts";
import { aSpec } from "#support/stepped-rollout.ts";
import { drawUpdatePlan, drawPlanBriefly } from "#cli/update/draw-plan.ts";

const node: PlannedNode = {
  id: "id-1",
  hostname: "n1",
  dc: "DC1",
  roles: ["worker"],
  ready: true,
  approval: "approved",
  lastSeen: "2026-11-21T12:00:00.000Z",
  currentVersion: "0.3.0",
  change: "update",
  reboots: "no",
  rebootReasons: [],
  wave: 1,
  blockers: ["it is not approved: pending"],
  warnings: [],
};
const plan: UpdatePlan = {
  name: "u1",
  result: "unchanged",
  generation: 1,
  owner: { id: "c1", epoch: 1 },
  hash: "3f9a1c2e77d0".padEnd(64, "0"),
  viable: false,
  target: "kcore 0.4.0",
  strategy: "one-at-a-time, at most 1 down",
  approval: "manual",
  likelyRequiresReboot: false,
  waves: [["id-1"]],
  nodes: [node],
  blockers: ["the selector means too much"],
  warnings: ["outside of the window"],
};
const now = Date.parse("2026-11-21T12:00:00Z");
const reasons = /^blocked: /gm;

describe("the drawing of an update's plan", () => {
  it("shows each blocker once: in the plan, or only in the problems that follow it", () => {
    const all = { wide: false, now };
    expect(drawUpdatePlan(plan, all).match(reasons)).to.have.length(2);
    expect(drawPlanBriefly(plan).match(reasons)).to.have.length(2);
    for (const text of [drawUpdatePlan(plan, { ...all, isRefused: true }), drawPlanBriefly(plan, { isRefused: true })])
      expect(text)
        .to.contain("not viable")
        .and.to.match(/^warning: outside of the window$/m)
        .and.not.to.match(reasons);
    expect(drawUpdatePlan(plan, { ...all, isRefused: true })).to.match(/^n1 .* yes +yes +approved /m);
    const rebooting: PlannedNode = { ...node, reboots: "yes", rebootReasons: ["kernel: 6.12.1 -> 6.12.2"] };
    expect(drawUpdatePlan({ ...plan, nodes: [rebooting] }, all)).to.match(/^n1 .* yes: kernel: 6\.12\.1 -> 6\.12\.2 /m);
  });

  it("shows text of controllers and nodes without control characters and workflow commands", () => {
    const evil = "n\u001B[2J\n::error::x";
    const hostile = {
      ...plan,
      name: evil,
      hash: evil,
      target: evil,
      strategy: evil,
      nodes: [{ ...node, hostname: evil, blockers: [evil], warnings: [evil] }],
      blockers: [evil],
      warnings: [evil],
    };
    for (const text of [drawUpdatePlan(hostile, { wide: true, now }), drawPlanBriefly(hostile)])
      expect(text)
        .to.not.contain("\u001B")
        .and.to.not.match(/^::error/m);
  });

  it("shows what apply or the given request would do, and the operator's next command", () => {
    expect(drawPlanBriefly(plan)).to.match(/^u1 unchanged: generation 1, /);
    expect(drawPlanBriefly({ ...plan, result: "updated" })).to.match(/^u1 would be updated: /);
    expect(drawPlanBriefly(plan, { would: "approved" })).to.match(/^u1 would be approved: generation 1, /);
    const ended = { name: "u1", phase: "cancelled", approvalStatus: "approved" } as const;
    expect(nextSteps(ended).join()).to.match(
      /^it is cancelled, and stays so; to try it again: .*apply -f FILE --again$/,
    );
    const spec = aSpec({ drain: { enabled: true, command: "x" } });
    const waiting = { name: "u1", phase: "pending", approvalStatus: "awaiting_approval", spec } as const;
    expect(nextSteps(waiting)).to.deep.equal([
      "next: kcore update cluster approve u1",
      "it waits for the bastion (drain): kcore update cluster run-hooks u1",
    ]);
    const attendance = { by: "operator ann", host: "bastion-1", at: "2026-11-29T12:00:00Z" };
    expect(nextSteps({ ...waiting, attendance })[1]).to.equal(
      "it waits for the bastion (drain), attended by operator ann on bastion-1 since 2026-11-29T12:00:00Z",
    );
    expect(drawUpdatePlan({ ...plan, attendance }, { wide: false, now })).to.contain(
      "\n  attended by operator ann on bastion-1 since 2026-11-29T12:00:00Z\n",
    );
  });
});
