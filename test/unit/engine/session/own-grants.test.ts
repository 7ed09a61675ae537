import { expect } from "chai";
import { grantsOf } from "#engine/session/own-grants.ts";

const contents = "0123456789abcdef";

describe("grantsOf", () => {
  it("returns grants without a node, and those with this node's name behind the contents", () => {
    const grants = [`S1:${contents}`, `S2:${contents}@n1`, "S3:restore@n1", `S4:${contents}@n11`, "S5@n1:restore"];
    expect(grantsOf("n1", grants)).to.deep.equal([`S1:${contents}`, `S2:${contents}`, "S3:restore", "S5@n1:restore"]);
    expect(grantsOf("n2", grants)).to.deep.equal([`S1:${contents}`, "S5@n1:restore"]);
  });
});
