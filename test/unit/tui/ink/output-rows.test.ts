import { expect } from "chai";
import fc from "#support/properties.ts";
import { finder, outputRows, type OutputRow } from "#tui/ink/output-rows.ts";
import { lineWidth, span } from "#tui/ink/text.ts";

const out = () => "out" as const;
const rowsOf = (text: string, width: number, find = "", wrap = true) =>
  outputRows(text, out, { width, wrap, find: finder(find) });
const found = ({ text, marks = [] }: OutputRow) => marks.map(([from, to]) => text.slice(from, to));

describe("rows of output", () => {
  it("wrap lines that are wider than the pane, or keep them whole", () => {
    expect(rowsOf("one two three\nfour\n", 8).map(({ text }) => text)).to.deep.equal(["one two ", "three", "four"]);
    expect(rowsOf("one two three\nfour\n", 8, "", false).map(({ text }) => text)).to.deep.equal([
      "one two three",
      "four",
    ]);
  });

  it("match a literal text, with case only if it has capitals", () => {
    expect(rowsOf("a.b A.B axb", 40, "a.b").map(found)).to.deep.equal([["a.b", "A.B"]]);
    expect(rowsOf("a.b A.B axb", 40, "A.b").map(found)).to.deep.equal([[]]);
    for (const text of ["(", "[a", "*", "\\", "a|b", "$"])
      expect(rowsOf(`x${text}y`, 40, text).map(found)).to.deep.equal([[text]]);
    expect(finder("")).to.equal(undefined);
  });

  it("match across two rows, marked in both and counted in the first", () => {
    const rows = rowsOf("0123456789", 6, "4567");
    expect(rows.map(found)).to.deep.equal([["45"], ["67"]]);
    expect(rows.map(({ isMatch = false }) => isMatch)).to.deep.equal([true, false]);
  });

  it("have the whole text and every match at any width", () => {
    const texts = fc
      .array(fc.constantFrom("a", "b", "é", "漢", " ", "👍🏽"), { maxLength: 40 })
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(texts, fc.integer({ min: 2, max: 12 }), fc.boolean(), (text, width, wrap) => {
        const rows = rowsOf(text, width, "ab", wrap);
        expect(rows.map((row) => row.text).join("")).to.equal(text);
        expect(rows.flatMap(found).join("")).to.equal("ab".repeat(text.split("ab").length - 1));
        if (wrap) for (const row of rows) expect(lineWidth([span(row.text)])).to.be.at.most(width);
      }),
    );
  });
});
