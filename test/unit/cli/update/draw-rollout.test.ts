import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { NodeUpdateView } from "#api/update-schemas.ts";
import { drawRollout, drawTransition, transitionsOf } from "#cli/update/draw-rollout.ts";
import { drawUpdate } from "#cli/update/draw-update.ts";
import { rolloutNode, rolloutNow, rolloutView } from "#support/update-views.ts";

const file = join(import.meta.dirname, "../../../fixtures/frames/rollout.txt");

/** 200 nodes in the middle of a rollout: of the first 120, one failed and nine are under way. */
function twoHundredNodes(): readonly NodeUpdateView[] {
  const phases = ["preparing", "draining", "activating", "rebooting", "verifying"] as const;
  return Array.from({ length: 200 }, (_, at) => {
    const index = at + 1;
    if (index === 111) return rolloutNode(index, { phase: "failed", failure: { kind: "gate", message: "web: 503" } });
    if (index === 112) return rolloutNode(index, { phase: "draining", hook: "drain" });
    if (index > 112 && index <= 120) return rolloutNode(index, { phase: phases[index % 5] ?? "preparing" });
    return rolloutNode(index, { phase: index < 112 ? "succeeded" : "pending" });
  });
}

describe("a rollout at a terminal", () => {
  it("of 200 nodes fits on a screen: counts by datacenter, and names of nodes under way or failed", () => {
    const lines = drawRollout(rolloutView(twoHundredNodes(), { waits: "n112, which is not interrupted" }), rolloutNow);
    const small = drawRollout(
      rolloutView([rolloutNode(1, { phase: "succeeded" }), rolloutNode(2)], { waits: "promotion" }),
      rolloutNow,
    );
    const text = `${lines.join("\n")}\n\n===\n\n${small.join("\n")}\n`;
    if (process.env["UPDATE_FRAMES"] === "1") writeFileSync(file, text);
    expect(text).to.equal(readFileSync(file, "utf8"));
    expect(lines).to.have.length.below(24);
    for (const line of lines) expect(line).to.have.length.below(100);
  });

  it("contains no control characters of names and messages", () => {
    const [node] = [
      rolloutNode(1, { hostname: "n\u001B[2J", phase: "failed", failure: { kind: "gate", message: "a\nb" } }),
    ];
    const evil = "n\u001B[2J: a\nb";
    const owner = { id: evil, epoch: 1, endpoint: evil, heard: false };
    const view = rolloutView([node], { reason: evil, target: evil, owner });
    for (const line of drawRollout(view, rolloutNow)) expect(/\p{Cc}/u.test(line), line).to.equal(false);
    expect(drawUpdate(view, { wide: true, now: rolloutNow })).not.to.contain("\u001B");
  });
});

const lines = (...args: Parameters<typeof transitionsOf>): readonly string[] =>
  transitionsOf(...args).map(drawTransition);

describe("the lines of a rollout", () => {
  const before = rolloutView([rolloutNode(1, { phase: "activating" }), rolloutNode(2)]);

  it("begin with the update's state and each node that has begun", () =>
    expect(lines(undefined, before)).to.deep.equal([
      "release-0-4-0 rolling_out, generation 1, 0/2 done",
      "n001 (DC1) activating",
    ]));

  it("show the log of a node's failure below the node's line", () => {
    const failure = { kind: "service", message: "it does not stay up\nstarting\nno key" } as const;
    const asking = rolloutView([rolloutNode(1, { phase: "failed", failure })]);
    expect(lines(undefined, asking).at(-1)).to.equal(
      "n001 (DC1) failed: service: it does not stay up\n    starting\n    no key",
    );
  });

  it("show the operator's next command, and the hook that a node waits for", () => {
    const waiting = rolloutView([rolloutNode(1)], { phase: "pending", waits: "approval" });
    expect(lines(undefined, waiting)).to.deep.equal([
      "release-0-4-0 pending, generation 1, 0/1 done: waits for approval; kcore update cluster approve release-0-4-0",
    ]);
    const both = "n2, which is not ready; approval: n1 has to reboot";
    const behind = rolloutView([rolloutNode(1)], { phase: "rolling_out", waits: both });
    expect(lines(undefined, behind)[0]).to.contain(`${both}; kcore update cluster approve release-0-4-0`);
    const asking = rolloutView([rolloutNode(1, { phase: "draining", hook: "drain" })]);
    expect(lines(undefined, asking).at(-1)).to.equal("n001 (DC1) draining: the bastion: drain");
  });

  it("begin again with each generation", () => {
    const next = rolloutView([rolloutNode(1), rolloutNode(2)], { generation: 2, phase: "pending" });
    expect(lines(before, next)).to.deep.equal(["release-0-4-0 pending, generation 2, 0/2 done"]);
  });
});
