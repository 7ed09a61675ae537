import { expect } from "chai";
import { drawTransition, transitionsOf } from "#cli/update/draw-rollout.ts";
import { rolloutNode, rolloutView } from "#support/update-views.ts";

const lines = (...args: Parameters<typeof transitionsOf>): readonly string[] =>
  transitionsOf(...args).map(drawTransition);

describe("the lines of a rollout", () => {
  const before = rolloutView([rolloutNode(1, { phase: "activating" }), rolloutNode(2)]);

  it("begin with how it stands: the whole, and each node that does not wait for its turn", () =>
    expect(lines(undefined, before)).to.deep.equal([
      "release-0-4-0 rolling_out, generation 1, 0/2 done",
      "n001 (DC1) activating",
    ]));

  it("C17: show the log that came with a node's failure below its line", () => {
    const failure = { kind: "service", message: "it does not stay up\nstarting\nno key" } as const;
    const asking = rolloutView([rolloutNode(1, { phase: "failed", failure })]);
    expect(lines(undefined, asking).at(-1)).to.equal(
      "n001 (DC1) failed: service: it does not stay up\n    starting\n    no key",
    );
  });

  it("say what an operator types next, and what the bastion is asked for", () => {
    const waiting = rolloutView([rolloutNode(1)], { phase: "pending", waits: "approval" });
    expect(lines(undefined, waiting)).to.deep.equal([
      "release-0-4-0 pending, generation 1, 0/1 done: waits for approval; kcore update cluster approve release-0-4-0",
    ]);
    const both = "n2, which is not ready; approval: n1 has to reboot";
    const behind = rolloutView([rolloutNode(1)], { phase: "rolling_out", waits: both });
    expect(lines(undefined, behind)[0], "C15").to.contain(`${both}; kcore update cluster approve release-0-4-0`);
    const asking = rolloutView([rolloutNode(1, { phase: "draining", hook: "drain" })]);
    expect(lines(undefined, asking).at(-1)).to.equal("n001 (DC1) draining: the bastion: drain");
  });

  it("of a new generation begin anew", () => {
    const next = rolloutView([rolloutNode(1), rolloutNode(2)], { generation: 2, phase: "pending" });
    expect(lines(before, next)).to.deep.equal(["release-0-4-0 pending, generation 2, 0/2 done"]);
  });
});
