import { readFile, stat, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { openRevokedKeys } from "#agent/revoked-keys.ts";
import { createLog } from "#api/log.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const [a, b] = ["a".repeat(64), "b".repeat(64)];

describe("the revoked keys that an agent keeps", () => {
  const dir = folderOfEachTest("revoked");
  let file: string;
  const log = createLog({ write: () => undefined, clock: () => 0 });
  beforeEach(() => (file = dir("revoked-keys.json")));

  it("S-11: are in force at once, and after a restart", async () => {
    const first = await openRevokedKeys(file, log);
    expect([first.version(), first.isRevoked(a)]).to.deep.equal(["", false]);
    expect([await first.add(undefined), await first.add({ version: "1", keys: [a] })]).to.deep.equal([false, true]);
    expect(await first.add({ version: "1", keys: [a] })).to.equal(false);
    expect((await stat(file)).mode & 0o777).to.equal(0o600);
    const second = await openRevokedKeys(file, log);
    expect([second.version(), second.isRevoked(a), second.isRevoked(b)]).to.deep.equal(["1", true, false]);
  });

  it("S-11: are never dropped, also if a controller that lags behind sends fewer", async () => {
    const revocations = await openRevokedKeys(file, log);
    await revocations.add({ version: "2", keys: [a, b] });
    await revocations.add({ version: "1", keys: [a] });
    expect([revocations.version(), revocations.isRevoked(b)]).to.deep.equal(["1", true]);
    expect(await readFile(file, "utf8")).to.contain(b);
  });

  it("S-11: count every key as revoked while the file is damaged, until a controller sends the list", async () => {
    await writeFile(file, "{");
    const revocations = await openRevokedKeys(file, log);
    expect(revocations.isRevoked(a)).to.equal(true);
    await revocations.add({ version: "", keys: [] });
    expect(revocations.isRevoked(a)).to.equal(false);
  });

  it("S-11: are in force if the file cannot be written, and are requested again after a restart", async () => {
    const lost = dir("missing", "revoked-keys.json");
    const revocations = await openRevokedKeys(lost, log);
    const taken = await revocations.add({ version: "1", keys: [a] }).catch(() => "failed");
    expect([taken, revocations.isRevoked(a)]).to.deep.equal(["failed", true]);
    expect((await openRevokedKeys(lost, log)).version()).to.equal("");
  });
});
