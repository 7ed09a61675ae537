import { expect } from "chai";
import { digestOf } from "#controller/backup-contents.ts";

describe("the digest of a backup's registers", () => {
  const before = new Map([
    ["node/a", "1"],
    ["node/b", "2"],
  ]);
  const digest = digestOf(before, before.keys());

  it("depends neither on the order nor on registers that the backup has not", () => {
    const after = new Map([...before].toReversed()).set("controller/new", "3");
    expect(digestOf(after, before.keys())).to.equal(digest);
  });

  it("differs for a register that is missing or has another value", () => {
    const keys = [...before.keys()];
    expect(digestOf(new Map([["node/a", "1"]]), keys)).not.to.equal(digest);
    expect(digestOf(new Map(before).set("node/b", "3"), keys)).not.to.equal(digest);
  });
});
