import { expect } from "chai";
import fc from "#support/properties.ts";
import stringWidth from "string-width";
import stringWidthOf, { padColumns, takeColumns, widthOf } from "#base/text.ts";

describe("the columns of a text", () => {
  it("agrees with string-width on every simple character, alone and between others", () => {
    for (const [first, last] of [
      [0x20, 0x17f],
      [0x2010, 0x2029],
      [0x2190, 0x23ff],
      [0x2500, 0x27bf],
    ] as const)
      for (let code = first; code <= last; code++) {
        const character = String.fromCharCode(code);
        if (widthOf(character) !== stringWidth(character)) expect.fail(`U+${code.toString(16)}`);
      }
  });

  it("counts wide, combining and joined characters", () =>
    expect([widthOf("漢字"), widthOf("e\u0301a\u0308"), widthOf("👩‍💻"), widthOf("plain")]).to.deep.equal([4, 2, 2, 5]));

  it("agrees with string-width on any text", () => {
    const pieces = fc.constantFrom(
      ..."aé─▸✓◐↔☺⌚漢각ก\u0301\u200d\ufe0f\u20e3\t\n".split(""),
      ..."1 👩‍💻 🇩🇪 👍🏽 #️⃣ ❤️ \u001b[31m \u001b[0m \u001b[38;5;12m \u001b[2K \u001b]8;;x\u0007 \u001b[ \u001b".split(" "),
    );
    const texts = fc.array(fc.oneof(pieces, fc.string({ unit: "grapheme" }))).map((parts) => parts.join(""));
    fc.assert(
      fc.property(texts, (text) => {
        expect([widthOf(text), stringWidthOf(text)]).to.deep.equal([stringWidth(text), stringWidth(text)]);
      }),
      { numRuns: 100 },
    );
  });

  it("cuts and pads by columns, and never splits a character", () => {
    expect([takeColumns("漢字", 3), takeColumns("e\u0301x", 1), takeColumns("👩‍💻!", 2)]).to.deep.equal([
      "漢",
      "e\u0301",
      "👩‍💻",
    ]);
    expect([padColumns("漢", 4), padColumns("ab", 1)]).to.deep.equal(["漢  ", "ab"]);
  });
});
