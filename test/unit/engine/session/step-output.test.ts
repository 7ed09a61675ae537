import { expect } from "chai";
import { StepOutput } from "#engine/session/step-output.ts";

const bytes = (text: string) => Buffer.from(text);
const texts = (found: readonly { readonly text: string }[]) => found.map(({ text }) => text);

describe("StepOutput", () => {
  it("returns whole lines, and the rest when it is drained", () => {
    const output = new StepOutput(() => 0);
    expect(texts(output.take("k.o", 0, ["0", "5", "0"], bytes("one\ntw")))).to.deep.equal(["one\n"]);
    expect(texts(output.take("k.e", 0, ["0", "3", "0"], bytes("er")))).to.deep.equal([]);
    expect(texts(output.take("k.o", 1, ["0", "6", "0"], bytes("o\nfür"))), "the next chunk").to.deep.equal(["two\n"]);
    expect(output.drain("k").map(({ stream, text }) => [stream, text])).to.deep.equal([
      ["out", "für"],
      ["err", "er"],
    ]);
    expect(output.drain("k")).to.deep.equal([]);
  });

  it("joins no text across a gap", () => {
    const output = new StepOutput(() => 0);
    output.take("k.o", 0, ["0", "3", "0"], bytes("one"));
    expect(output.take("k.o", 9, ["0", "4", "500"], bytes("two\n"))).to.deep.equal([
      { text: "one", bytes: bytes("one"), skipped: 0 },
      { text: "two\n", bytes: bytes("two\n"), skipped: 500 },
    ]);
  });

  it("returns each piece once, though the node sends it again", () => {
    const output = new StepOutput(() => 0);
    const pieces = Array.from({ length: 30 }, (_, index) => 1_000_000 + index);
    for (const piece of pieces) output.take("k.o", piece, ["0", "2", "0"], bytes("x\n"));
    // The node keeps the first twenty pieces, the first large one and the last three (runner.sh, k_reader).
    for (const piece of [...pieces.slice(0, 21), ...pieces.slice(-3)])
      expect(output.take("k.o", piece, ["0", "2", "0"], bytes("x\n")), String(piece)).to.deep.equal([]);
  });
});
