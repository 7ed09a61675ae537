import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { serviceStopped } from "#engine/modules/service-stopped.ts";
import { fakeSystemctl } from "#support/systemctl.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("service.stopped", () => {
  it("wants the unit inactive and disabled, or masked", () => {
    expect(stepOf(serviceStopped, { name: "x" }).want).to.deep.equal({ active: "inactive", enabled: "disabled" });
    expect(stepOf(serviceStopped, { name: "x", mask: true }).want).to.deep.equal({
      active: "inactive",
      enabled: "masked",
    });
    expect(stepOf(serviceStopped, { name: "x", enabled: "keep" }).want).to.deep.equal({ active: "inactive" });
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-service-"));
      });
      afterEach(() => rmSync(folder, { recursive: true }));
      const run = (unit: string, args: object = {}) => {
        writeFileSync(join(folder, "unit"), unit);
        return runStepOn(shell, stepOf(serviceStopped, { name: "demo", ...args }), { bin: fakeSystemctl(folder) });
      };

      it("stops, disables and masks", async () => {
        expect((await run("ActiveState=active\nUnitFileState=enabled\n")).outcome).to.equal("changed");
        expect((await run("ActiveState=active\nUnitFileState=enabled\n", { mask: true })).outcome).to.equal("changed");
      });

      it("finds a failed, a static and a missing unit in order", async () => {
        expect((await run("ActiveState=failed\nUnitFileState=disabled\n")).outcome).to.equal("ok");
        expect((await run("ActiveState=inactive\nUnitFileState=static\n")).outcome).to.equal("ok");
        expect((await run("ActiveState=inactive\nUnitFileState=\nLoadState=not-found\n")).outcome).to.equal("ok");
      });

      it("says what did not stop", async () => {
        expect((await run("ActiveState=active\nUnitFileState=enabled\nBreaks=stop\n")).problem?.code).to.equal(
          "SERVICE_FAILED",
        );
      });
    });
});
