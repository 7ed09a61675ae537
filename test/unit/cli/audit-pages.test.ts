import { symlinkSync } from "node:fs";
import { expect } from "chai";
import type { ReplyOf } from "#api/methods.ts";
import { localLines, trailPages } from "#cli/audit/trails.ts";
import { codeOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("a controller's audit trail in pages", () => {
  const problemOf = async (answer: (from: number) => ReplyOf<"listAudit">): Promise<string> => {
    try {
      for await (const { text } of trailPages("c1:7443", async (from) => answer(from))) void text;
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const line = { file: "000000000001.ndjson", line: 1, text: "x".repeat(1 << 20) };
  const short = { ...line, text: "" };

  it("is read to its last page", async () =>
    expect(await problemOf((from) => ({ lines: [line], ...(from < 3 && { next: from + 1 }) }))).to.equal(""));

  it("of a hostile controller without a last page is refused", async () => {
    const endless = "the audit trail of c1:7443 has no end";
    for (const lines of [[], [short], [short, line]])
      expect(await problemOf(() => ({ lines, next: 1 }))).to.equal(endless);
    for (const step of [1, 0.5])
      expect(await problemOf((from) => ({ lines: [], next: from + step }))).to.equal(endless);
    expect(await problemOf((from) => ({ lines: [short], next: from + 1 }))).to.equal(endless);
    expect(await problemOf((from) => ({ lines: [line], next: from + 1 }))).to.equal(endless);
  });
});

describe("an audit trail on this machine", () => {
  const folder = folderOfEachTest("trail");

  it("is FILE_UNREADABLE if it cannot be read", async () => {
    symlinkSync("/dev/null", folder("000000000001.ndjson"));
    expect(await codeOf(localLines(folder()).next())).to.equal("FILE_UNREADABLE");
  });
});
