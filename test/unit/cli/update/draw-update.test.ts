import { expect } from "chai";
import type { NodeUpdateView } from "#api/update-schemas.ts";
import { drawUpdate } from "#cli/update/draw-update.ts";
import { rolloutNode, rolloutNow, rolloutView } from "#support/update-views.ts";

/** The text below GENERATION for a node that an update brings from generation 1 to 2. */
function generationOf(phase: NodeUpdateView["phase"], currentGeneration = 1): string | undefined {
  const view = rolloutView([rolloutNode(1, { phase, currentGeneration })]);
  const lines = drawUpdate(view, { wide: false, now: rolloutNow }).split("\n");
  const [head = "", line = ""] = lines.slice(lines.findIndex((one) => one.startsWith("NODE ")));
  return line.slice(head.indexOf("GENERATION")).split(" ")[0];
}

describe("the nodes of an update in a table", () => {
  it("show both generations while the node changes", () => {
    for (const phase of ["preparing", "prepared", "draining", "activating", "rebooting"] as const)
      expect(generationOf(phase), phase).to.equal("1->2");
    expect([generationOf("verifying", 2), generationOf("succeeded", 2)]).to.deep.equal(["2", "2"]);
  });

  it("show the first line of a failure in the row, and its log once below the table", () => {
    const message = "agent does not stay up: systemd started it 3 times\nstarting\nError: no \u001B[2Jkey";
    const view = rolloutView([
      rolloutNode(1, { phase: "failed", failure: { kind: "service", message } }),
      rolloutNode(2),
    ]);
    for (const wide of [true, false])
      expect(drawUpdate(view, { wide, now: rolloutNow })).to.match(
        /\n\nn001: service: agent does not stay up: systemd started it 3 times\n {4}starting\n {4}Error: no key\n$/,
      );
    expect(drawUpdate(view, { wide: true, now: rolloutNow }).split("Error: no key")).to.have.length(2);
  });

  it("show only the present generation after a failure, rollback or cancellation", () => {
    for (const phase of ["rolled_back", "rolling_back", "failed", "cancelled"] as const)
      expect(generationOf(phase), phase).to.equal("1");
    expect(generationOf("failed", 2)).to.equal("2");
  });
});
