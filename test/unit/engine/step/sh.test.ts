import { expect } from "chai";
import { sh } from "#engine/step/sh.ts";

describe("sh text with something else in its holes", () => {
  const word = (quoted: string): string => `<${quoted}>`;
  const never = (): string => {
    throw new Error("there is neither a secret nor a blob");
  };

  it("has it for each value, also of a list", () => {
    const text = sh`ls -- ${"a b"} ${["c", "d"]} >${"/x"}`;
    expect(text.render({ word, secret: never, blob: never })).to.equal("ls -- <'a b'> <c> <d> ></x>");
  });

  it("refuses a value with a NUL byte, which no word of a shell holds", () =>
    expect(() => sh`ls ${"a\0b"}`.toString()).to.throw("a shell word cannot hold a NUL byte"));

  it("keeps a value that is part of a name", () =>
    expect(sh`found_${1}=$(echo ${1}); [ -z "$found_${1}" ]`.render({ word, secret: never, blob: never })).to.equal(
      'found_1=$(echo <1>); [ -z "$found_1" ]',
    ));
});
