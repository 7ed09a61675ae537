import { expect } from "chai";
import { isInSlice, shellsOf } from "#support/shells.ts";
import { shells } from "#support/steps.ts";

describe("the shells of module tests", () => {
  it("are all for one third of the modules, and for another third at each commit", () => {
    for (const name of ["file-line", "service-running", "zfs-pool"])
      expect([7, 8, 9].filter((base) => isInSlice(name, base))).to.have.length(1);
  });

  it("include dash always, and are all with KCORE_SHELLS=all", () => {
    const asked = process.env["KCORE_SHELLS"];
    try {
      process.env["KCORE_SHELLS"] = "all";
      expect(shellsOf("/a/file-line.test.ts")).to.equal(shells);
      delete process.env["KCORE_SHELLS"];
      for (const name of ["a", "b", "c"]) expect(shellsOf(`/a/${name}.test.ts`)[0]).to.equal("dash");
    } finally {
      if (asked === undefined) delete process.env["KCORE_SHELLS"];
      else process.env["KCORE_SHELLS"] = asked;
    }
  });
});
