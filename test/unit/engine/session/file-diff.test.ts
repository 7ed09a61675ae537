import { expect } from "chai";
import { unifiedDiff } from "#engine/session/file-diff.ts";

describe("the diff of a file", () => {
  it("V11: has the ranges of diff -u, also of a file that is new or empty afterwards", async () => {
    expect(await unifiedDiff("", "a\nb\n")).to.equal("@@ -0,0 +1,2 @@\n+a\n+b");
    expect(await unifiedDiff("a\n", "")).to.equal("@@ -1,1 +0,0 @@\n-a");
    expect(await unifiedDiff("a\nb\n", "a\nc\n")).to.match(/^@@ -1,2 \+1,2 @@\n/);
  });
});
