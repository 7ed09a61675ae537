import { readFileSync } from "node:fs";
import { expect } from "chai";
import { interpreterOf, stripProgram } from "#runtime/elf.ts";

/** The smallest ELF: a header, two segments, and sections behind them. */
function program(): Buffer {
  const elf = Buffer.alloc(300);
  elf.writeUInt32BE(0x7f454c46, 0);
  elf.writeUInt16BE(0x0201, 4);
  elf.writeBigUInt64LE(64n, 32);
  elf.writeBigUInt64LE(250n, 40);
  elf.writeUInt16LE(56, 54);
  elf.writeUInt16LE(2, 56);
  elf.writeUInt16LE(5, 60);
  const segment = (at: number, type: number, offset: number, size: number): void => {
    elf.writeUInt32LE(type, at);
    elf.writeBigUInt64LE(BigInt(offset), at + 8);
    elf.writeBigUInt64LE(BigInt(size), at + 32);
  };
  segment(64, 1, 0, 200);
  segment(120, 3, 180, 8);
  elf.write("/ld.so.2", 180, "latin1");
  elf.fill(0xdb, 200);
  elf.writeUInt8(0, 187);
  return elf;
}

describe("a stripped program", () => {
  it("ends with its last segment and has no sections", () => {
    const stripped = stripProgram(program());
    expect(stripped).to.have.length(200);
    expect([stripped.readBigUInt64LE(40), stripped.readUInt16LE(60)]).to.deep.equal([0n, 0]);
  });

  it("names its loader", () => {
    expect(interpreterOf(program())).to.equal("/ld.so.");
    expect(interpreterOf(readFileSync("/bin/sh"))).to.match(/^\/lib.*\/ld-/);
  });

  it("is made of nothing but 64-bit ELF programs", () =>
    expect(() => stripProgram(Buffer.from("#!/bin/sh\n".padEnd(100)))).to.throw(RangeError));
});
