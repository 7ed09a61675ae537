import { expect } from "chai";
import fc from "#support/properties.ts";
import { WholeLines } from "#engine/events/whole-lines.ts";

describe("whole lines", () => {
  it("come out of pieces that were cut anywhere, and nothing is lost", () =>
    fc.assert(
      fc.property(fc.array(fc.string({ unit: fc.constantFrom("a", "ä", "\n", "\r") }), { maxLength: 20 }), (pieces) => {
        const lines = new WholeLines();
        const told = pieces.map((piece) => lines.take(Buffer.from(piece), 0).toString());
        for (const one of told) expect(one).to.match(/^(?:[^]*[\n\r])?$/);
        expect(told.join("") + lines.end().toString()).to.equal(pieces.join(""));
      }),
    ));

  it("keep a carriage return and its line feed together", () => {
    const lines = new WholeLines();
    const told = [lines.take(Buffer.from("one\r"), 0), lines.take(Buffer.from("\ntwo"), 0), lines.end()];
    expect(told.map(String)).to.deep.equal(["", "one\r\n", "two"]);
  });

  it("do not wait for ever: for dots that come one by one, or for a line without end", () => {
    const lines = new WholeLines();
    const times = [0, 900, 1800, 2700, 3600];
    expect(times.map((now) => lines.take(Buffer.from("."), now).toString())).to.deep.equal(["", "", "", "....", ""]);
    expect(lines.take(Buffer.alloc(20_000, "x"), 3700)).to.have.length(20_001);
    expect(lines.end()).to.have.length(0);
  });
});
