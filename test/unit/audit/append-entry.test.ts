import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { appendEntry } from "#audit/append-entry.ts";

describe("an entry of an audit trail", () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "kcore-trail-"))));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("is complete or missing if the disk takes only a part of it", async () => {
    const source = join(import.meta.dirname, "../../../src/audit/append-entry.ts");
    const program = `const { appendEntry } = await import(${JSON.stringify(source)});
try { appendEntry(${JSON.stringify(folder)}, 1, { what: "x".repeat(9_000) }); } catch (error) { console.log(error.code); }`;
    // A file of this process takes at most 1 KiB or, in other shells, 512 bytes: write(2) writes so much, then fails.
    const limited = ["-c", 'ulimit -f 1 && exec "$@"', "sh", process.execPath, "--input-type=module", "-e", program];
    const { stdout } = await promisify(execFile)("sh", limited);
    expect([stdout, readdirSync(folder)]).to.deep.equal(["EFBIG\n", []]);
    const { n } = appendEntry(folder, 2, { what: "small" });
    expect([n, readFileSync(join(folder, "000000000001.ndjson"), "utf8").endsWith("\n")]).to.deep.equal([1, true]);
  });
});
