import { expect } from "chai";
import { sh } from "#engine/step/sh.ts";

describe("render with a function for words", () => {
  const word = (quoted: string): string => `<${quoted}>`;
  const never = (): string => {
    throw new Error("there is neither a secret nor a blob");
  };

  it("passes each value to the function, also of a list", () => {
    const text = sh`ls -- ${"a b"} ${["c", "d"]} >${"/x"}`;
    expect(text.render({ word, secret: never, blob: never })).to.equal("ls -- <'a b'> <c> <d> ></x>");
  });

  it("refuses a value with a NUL byte", () =>
    expect(() => sh`ls ${"a\0b"}`.toString()).to.throw("a shell word cannot hold a NUL byte"));

  it("keeps a value inside a word as it is", () =>
    expect(sh`found_${1}=$(echo ${1}); [ -z "$found_${1}" ]`.render({ word, secret: never, blob: never })).to.equal(
      'found_1=$(echo <1>); [ -z "$found_1" ]',
    ));
});
