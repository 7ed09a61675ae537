import { expect } from "chai";
import fc from "#support/properties.ts";
import { widthOf } from "#base/text.ts";
import { fit, fitLine, lineWidth, paintLine, span, wrapText, wrapWords } from "#tui/ink/text.ts";
import { asciiTheme, colourTheme, plainTheme } from "#support/scenes.ts";

const { glyphs } = plainTheme;

describe("texts on a terminal", () => {
  it("are truncated with a mark, between characters", () => {
    expect([fit("a long name", 6, glyphs), fit("漢字漢字", 6, glyphs)]).to.deep.equal(["a lon…", "漢字…"]);
    expect([fit("e\u0301e\u0301e\u0301", 2, glyphs), fit("fits", 4, glyphs)]).to.deep.equal(["e\u0301…", "fits"]);
    expect(fit("x", 0, glyphs)).to.equal("");
  });

  it("wrap between words, and within a word longer than a line", () => {
    expect(wrapWords("the command ended badly", 12)).to.deep.equal(["the command", "ended badly"]);
    expect(wrapWords("0123456789", 4)).to.deep.equal(["0123", "4567", "89"]);
    expect(wrapText("ab\tc\nd", 4)).to.deep.equal(["ab  ", "  c", "d"]);
  });

  it("S-4: have no terminal sequences of a node", () => {
    const evil = "\u001b[2J\u001b]52;c;aGk=\u0007\u009b31mred\r\nnext\u0008\u202e";
    expect(paintLine([span(evil)], 80, plainTheme)).to.equal("red next\\x08\\u202e");
    const painted = paintLine([span(evil, "failed")], 80, colourTheme);
    expect(painted).to.equal(colourTheme.paint("failed", "red next\\x08\\u202e"));
  });

  it("have the same width in ASCII", () =>
    expect(paintLine([span("“漢” → é…")], 80, asciiTheme)).to.equal('"??" > ?~'));

  it("are no wider than the given width for any text", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" })), fc.integer({ min: 0, max: 40 }), (texts, width) => {
        const line = texts.map((text) => span(text));
        expect(lineWidth(fitLine(line, width, glyphs))).to.be.at.most(width);
        expect(widthOf(paintLine(line, width, asciiTheme))).to.be.at.most(width);
      }),
      { numRuns: 10 },
    );
  });
});
