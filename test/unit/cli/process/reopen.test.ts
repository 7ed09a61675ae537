import { expect } from "chai";
import { closeSync, fstatSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reopen } from "#cli/process/reopen.ts";

describe("a descriptor that becomes a log's", () => {
  let folder: string;
  let log: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kcore-reopen-"));
    log = join(folder, "log");
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const append = (file: string): number => openSync(file, "a", 0o600);
  const openNow = (): number => readdirSync("/proc/self/fd").length;

  it("appends to it", () => {
    const descriptor = openSync("/dev/null", "w");
    reopen(descriptor, log);
    writeSync(descriptor, "one\n");
    expect(fstatSync(descriptor).mode & 0o777).to.equal(0o600);
    closeSync(descriptor);
    expect(readFileSync(log, "utf8")).to.equal("one\n");
  });

  it("is waited for when another thread was faster, and nothing else stays open", () => {
    const descriptor = openSync("/dev/null", "w");
    const before = openNow();
    let thief: number | undefined;
    let waits = 0;
    reopen(descriptor, log, {
      open: (file) => {
        thief ??= openSync("/dev/null", "r");
        return append(file);
      },
      wait: () => {
        waits += 1;
        if (waits === 3) closeSync(thief ?? -1);
      },
    });
    expect([thief, waits, openNow()]).to.deep.equal([descriptor, 3, before]);
    writeSync(descriptor, "two\n");
    closeSync(descriptor);
    expect(readFileSync(log, "utf8")).to.equal("two\n");
  });

  it("is given up when somebody keeps it", () => {
    const descriptor = openSync("/dev/null", "w");
    let thief: number | undefined;
    const open = (file: string): number => {
      thief ??= openSync("/dev/null", "r");
      return append(file);
    };
    expect(() => reopen(descriptor, log, { open, wait: () => undefined })).to.throw("was taken");
    closeSync(thief ?? -1);
  });
});
