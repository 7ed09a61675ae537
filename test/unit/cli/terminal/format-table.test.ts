import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import { formatTable } from "#cli/terminal/format-table.ts";
import { widthOf } from "#base/text.ts";

const heading = ["NAME", "FROM", "REASON", "DESCRIPTION", "ID"];
const id = "0b8c2a52-6f0e-4a39-9c57-1b1f0b6f9a11";
const rows = [
  ["deploy_node", "shipped", "", "Takes a bare machine to a Ready node, with all that it needs on the way", id],
  ["機械を準備する", "project", "-", "クラスタに入れる machine and more words than fit into a line", id],
];
const lines = (text: string) => text.trimEnd().split("\n");

describe("a table", () => {
  it("is no wider than the terminal, and wraps cells without losing words", () => {
    for (const columns of [200, 120, 100, 80, 60, 40, 20]) {
      const drawn = formatTable(heading, rows, { columns });
      for (const line of lines(drawn)) expect(widthOf(line), `${columns}: ${line}`).to.be.at.most(columns);
      for (const word of columns >= 60 ? ["bare", "Ready", "more", "line"] : [])
        expect(drawn, `${columns}`).to.contain(word);
    }
  });

  it("first omits columns without values, then the last columns, which its note names", () => {
    expect(formatTable(heading, rows, { columns: 200 }))
      .to.contain("REASON")
      .and.not.to.contain("no room");
    expect(formatTable(heading, rows, { columns: 100 }))
      .to.contain(id)
      .and.not.to.contain("REASON");
    expect(formatTable(heading, rows, { columns: 50 }))
      .to.contain("(no room for ID: a wider terminal or -o json shows")
      .and.not.to.contain(id);
  });

  it("aligns wide characters, and has every column outside a terminal", () => {
    const [head = "", , second = ""] = lines(formatTable(heading, rows));
    expect(widthOf(second.slice(0, second.indexOf("project")))).to.equal(head.indexOf("FROM"));
    expect(lines(formatTable(heading, rows))).to.have.length(3);
  });

  it("has the same widths with colours", () => {
    const paint = (text: string, column: number) => (column === 1 ? `\u001B[32m${text}\u001B[0m` : text);
    const painted = formatTable(heading, rows, { paint });
    expect(stripVTControlCharacters(painted)).to.equal(formatTable(heading, rows));
    expect(lines(painted)[0]).to.equal(lines(formatTable(heading, rows))[0]);
  });
});
