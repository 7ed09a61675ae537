import { expect } from "chai";
import type { Column } from "#tui/columns/column.ts";
import { conflictColumns, conflictOfEdits, conflictOfName } from "#tui/columns/conflict-columns.ts";
import { controllerColumns } from "#tui/columns/controller-columns.ts";
import { nodeColumns } from "#tui/columns/node-columns.ts";
import { ago, fleetNode, fleetNow, smallFleet } from "#support/fleet.ts";

/** The text of one column of a row. */
function textOf<Row>(columns: readonly Column<Row>[], title: string, row: Row): string | undefined {
  return columns.find((column) => column.title === title)?.cell(row, fleetNow);
}

describe("the columns of the cluster's records", () => {
  const side = (value: unknown) => ({ value, dot: "", origin: "c1", at: ago(60) });

  it("have a node's number of conflicts, and “name” for a conflict about its name", () => {
    const name = { with: ["n2"], keepsName: true };
    const texts = [{}, { conflicts: 2 }, { nameConflict: name }, { conflicts: 2, nameConflict: name }].map((changes) =>
      textOf(nodeColumns, "CONFLICTS", fleetNode(1, changes)),
    );
    expect(texts).to.deep.equal(["0", "2", "name", "2+name"]);
  });

  it("have a conflict's newest losing value, truncated, and the number of others", () => {
    const sides = { winner: side(null), loser: side("x".repeat(60)), others: [side("a"), side("b")] };
    const row = conflictOfEdits({ id: "c1", key: "node/n1/label/tier", at: ago(60), ...sides });
    expect(textOf(conflictColumns, "LOSER", row)).to.equal(`"${"x".repeat(46)}… (+2)`);
    expect(textOf(conflictColumns, "WINNER", row)).to.equal("(deleted)");
  });

  it("have the nodes of a shared host name without blanks, at which scripts split rows", () => {
    const row = conflictOfName({ hostname: "twin", nodes: ["a", "b", "c"], keptBy: "a" });
    expect(textOf(conflictColumns, "LOSER", row)).to.equal("b,c");
  });

  it("have no contact for the answering controller", () => {
    const [self, other] = smallFleet().controllers.map((row) => textOf(controllerColumns, "CONTACT", row));
    expect([self, other]).to.deep.equal(["-", "1s"]);
  });
});
