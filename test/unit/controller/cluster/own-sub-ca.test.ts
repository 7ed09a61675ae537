import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import { createLog } from "#api/log.ts";
import { openSubCa } from "#controller/cluster/own-sub-ca.ts";
import { folderOfEachTest } from "../../../support/temp-dir.ts";

describe("a controller's own sub-CA", () => {
  const dir = folderOfEachTest("sub-ca");

  it("logs each problem of its two pairs of files once", async () => {
    const deployed = { certFile: dir("deployed.crt"), keyFile: dir("deployed.key") };
    const files = [deployed.certFile, deployed.keyFile, dir("sub-ca.crt"), dir("sub-ca.key")];
    for (const file of files) await writeFile(file, "no PEM");
    const lines: string[] = [];
    const subCa = openSubCa({
      cluster: "lab",
      controllerId: "a",
      rootPem: () => "",
      files: deployed,
      folder: dir(),
      records: {} as never,
      certificates: {} as never,
      log: createLog({ write: (line) => lines.push(line), clock: () => 0 }),
      clock: () => 0,
    });
    for (let round = 0; round < 3; round++) await subCa.load();
    expect(lines).to.have.length(2);
  });
});
