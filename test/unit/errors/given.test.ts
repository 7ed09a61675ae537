import { expect } from "chai";
import { given } from "#errors/given.ts";

describe("given", () => {
  it("leaves out what is undefined, and nothing else", () => {
    expect(given({ a: undefined, b: null, c: 0, d: "", e: false })).to.deep.equal({ b: null, c: 0, d: "", e: false });
    expect(Object.keys({ ...given({ a: undefined }) })).to.deep.equal([]);
  });
});
