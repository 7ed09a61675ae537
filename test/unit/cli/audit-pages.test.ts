import { expect } from "chai";
import type { ReplyOf } from "#api/methods.ts";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { localLines, trailPages } from "#cli/audit/trails.ts";
import { KcoreError } from "#errors/problem.ts";

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
  it("is FILE_UNREADABLE if it cannot be read", async () => {
    const folder = mkdtempSync(join(tmpdir(), "kcore-trail-"));
    try {
      symlinkSync("/dev/null", join(folder, "000000000001.ndjson"));
      const lines = localLines(folder);
      const error = await lines.next().then(
        () => undefined,
        (cause: unknown) => cause,
      );
      expect(error).to.be.instanceOf(KcoreError);
      expect((error as KcoreError).problems.map(({ code }) => code)).to.deep.equal(["FILE_UNREADABLE"]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
