import { expect } from "chai";
import fc, { anyText } from "#support/properties.ts";
import { escapeLine, FrameReader, unescapeLine } from "#engine/program/frames.ts";

const nonce = "0123456789abcdef0123456789abcdef";

describe("FrameReader", () => {
  const read = (
    text: string | Uint8Array,
    size = 7,
  ): { types: string[]; reader: FrameReader; bytes: (Uint8Array | undefined)[] } => {
    const reader = new FrameReader(nonce);
    const data = Buffer.from(text as string);
    const types: string[] = [];
    const bytes: (Uint8Array | undefined)[] = [];
    for (let at = 0; at < data.length; at += size)
      for (const frame of reader.push(data.subarray(at, at + size))) {
        types.push(`${frame.type} ${frame.rest}`.trim());
        bytes.push(frame.bytes);
      }
    return { types, reader, bytes };
  };

  it("ignores the output of login shells, and keeps it for messages (F-12)", () => {
    const { types, reader } = read(`Welcome!\nstty: not a tty\n${nonce} hello 1 0\nnews\n${nonce} end a ok 0\n`);
    expect([types, reader.noise]).to.deep.equal([["hello 1 0", "end a ok 0"], "Welcome!\nstty: not a tty\nnews\n"]);
  });

  it("skips a frame that a killed step left incomplete", () =>
    expect(read(`${nonce} have a mode=06${nonce} end a failed 137\n`).types).to.deep.equal(["end a failed 137"]));

  it("carries any bytes of output, also bytes that look like frames (F-11)", () => {
    const output = Buffer.from(`\0\xff\n${nonce} end a ok 0\n`, "latin1");
    const text = Buffer.concat([
      Buffer.from(`${nonce} out a.o.0 0 ${output.length} 0\n`),
      output,
      Buffer.from(`\n${nonce} end a changed 10\n`),
    ]);
    const { types, bytes } = read(text);
    expect(types).to.deep.equal([`out a.o.0 0 ${output.length} 0`, "end a changed 10"]);
    expect(Buffer.from(bytes[0] ?? []).equals(output)).to.equal(true);
  });

  it("counts the journal's bytes only, so that a new attach continues where the last one stopped", () => {
    const journal = `${nonce} segment 1\n${nonce} end a ok 0\n`;
    expect(read(`motd\n${nonce} hello 1\n${nonce} runner new 0\n${journal}`).reader.offset).to.equal(journal.length);
  });

  it("refuses a line without end (S-4)", () => expect(() => read("x".repeat(3 << 20), 1 << 20)).to.throw(RangeError));

  it("refuses more output at once than any runner sends (S-4)", () =>
    expect(() => read(`${nonce} out a.o.0 0 ${2 ** 40} 0\n`)).to.throw(RangeError));

  it("unescapeLine restores every text from escapeLine", () =>
    fc.assert(
      fc.property(anyText(), (text) => {
        const line = escapeLine(text);
        expect(line).to.not.include("\n");
        expect(unescapeLine(line)).to.equal(text);
      }),
    ));
});
