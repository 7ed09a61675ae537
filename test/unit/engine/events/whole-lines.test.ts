import { expect } from "chai";
import fc from "#support/properties.ts";
import { WholeLines } from "#engine/events/whole-lines.ts";

describe("WholeLines", () => {
  it("returns whole lines of pieces cut anywhere, and loses no byte", () =>
    fc.assert(
      fc.property(fc.array(fc.string({ unit: fc.constantFrom("a", "ä", "\n", "\r") }), { maxLength: 20 }), (pieces) => {
        const lines = new WholeLines();
        const returned = pieces.map((piece) => lines.take(Buffer.from(piece), 0).toString());
        for (const one of returned) expect(one).to.match(/^(?:[^]*[\n\r])?$/);
        expect(returned.join("") + lines.end().toString()).to.equal(pieces.join(""));
      }),
    ));

  it("keeps a carriage return and its line feed together", () => {
    const lines = new WholeLines();
    const returned = [lines.take(Buffer.from("one\r"), 0), lines.take(Buffer.from("\ntwo"), 0), lines.end()];
    expect(returned.map(String)).to.deep.equal(["", "one\r\n", "two"]);
  });

  it("returns an unfinished line after some seconds, or once it is long", () => {
    const lines = new WholeLines();
    const times = [0, 900, 1800, 2700, 3600];
    expect(times.map((now) => lines.take(Buffer.from("."), now).toString())).to.deep.equal(["", "", "", "....", ""]);
    expect(lines.take(Buffer.alloc(20_000, "x"), 3700)).to.have.length(20_001);
    expect(lines.end()).to.have.length(0);
  });
});
