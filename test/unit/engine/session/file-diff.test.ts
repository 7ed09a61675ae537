import { expect } from "chai";
import { unifiedDiff } from "#engine/session/file-diff.ts";

describe("unifiedDiff", () => {
  it("prints the ranges of diff -u, also for a new or emptied file", async () => {
    expect(await unifiedDiff("", "a\nb\n")).to.equal("@@ -0,0 +1,2 @@\n+a\n+b");
    expect(await unifiedDiff("a\n", "")).to.equal("@@ -1,1 +0,0 @@\n-a");
    expect(await unifiedDiff("a\nb\n", "a\nc\n")).to.match(/^@@ -1,2 \+1,2 @@\n/);
  });
});
