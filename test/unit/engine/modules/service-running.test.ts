import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { serviceRunning } from "#engine/modules/service-running.ts";
import { fakeSystemctl } from "#support/systemctl.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("service.running", () => {
  it("wants the unit active and enabled", () => {
    expect(stepOf(serviceRunning, { name: "sshd" }).want).to.deep.equal({ active: "active", enabled: "enabled" });
    expect(stepOf(serviceRunning, { name: "x.timer", enabled: "keep" }).want).to.deep.equal({ active: "active" });
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-service-"));
      });
      afterEach(() => rmSync(folder, { recursive: true }));
      const run = (unit: Record<string, string>, args: object = {}, options: object = {}) => {
        writeFileSync(
          join(folder, "unit"),
          Object.entries(unit)
            .map(([key, value]) => `${key}=${value}\n`)
            .join(""),
        );
        return runStepOn(shell, stepOf(serviceRunning, { name: "demo", ...args }), {
          bin: fakeSystemctl(folder),
          ...options,
        });
      };
      const calls = (): string => readFileSync(join(folder, "calls"), "utf8");

      it("leaves a running unit alone, asked once", async () => {
        expect((await run({ ActiveState: "active", UnitFileState: "enabled" })).outcome).to.equal("ok");
        expect(calls()).to.equal("show -p ActiveState,LoadState,UnitFileState -- demo.service\n");
      });

      it("starts and enables a stopped one", async () => {
        const done = await run({ ActiveState: "inactive", UnitFileState: "disabled" });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
      });

      it("shows the unit's log when it does not start", async () => {
        const failed = await run({ ActiveState: "failed", UnitFileState: "enabled", Breaks: "start" });
        expect([failed.problem?.code, failed.problem?.detail]).to.deep.equal([
          "SERVICE_FAILED",
          "the log of demo.service",
        ]);
      });

      it("shows the unit's log and why when it is not up after its start, without verifyFor too", async () => {
        const crashed = await run({ ActiveState: "inactive", UnitFileState: "enabled", Breaks: "at-once" });
        expect(crashed.problem).to.deep.equal({
          code: "SERVICE_FAILED",
          message: "demo.service was started and is not running: it is failed",
          detail: "the log of demo.service",
        });
        const unmet = { ActiveState: "inactive", UnitFileState: "enabled", Breaks: "condition" };
        expect((await run(unmet)).problem).to.deep.equal({
          code: "SERVICE_FAILED",
          message: "demo.service was started and is not running: a condition of the unit does not hold",
          detail: "the log of demo.service",
        });
        const running = { ActiveState: "active", UnitFileState: "enabled", Breaks: "at-once" };
        expect((await run(running, {}, { due: true })).problem?.code).to.equal("SERVICE_FAILED");
      });

      it("starts it again in a further attempt", async () => {
        const retry = { attempts: 2, interval: 1 };
        const unit = { ActiveState: "inactive", UnitFileState: "enabled", Breaks: "at-once" };
        expect((await run(unit, {}, { plan: { retry } })).problem?.code).to.equal("SERVICE_FAILED");
        expect(calls().match(/^start /gm)).to.have.length(2);
      });

      it("refuses a masked unit, or unmasks it when told to", async () => {
        const masked = { ActiveState: "inactive", LoadState: "masked", UnitFileState: "masked" };
        expect((await run(masked, {}, { dryRun: true })).problem?.code).to.equal("UNIT_MASKED");
        const done = await run(masked, { unmask: true });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
      });

      it("refuses to enable what has no [Install] section", async () => {
        expect((await run({ ActiveState: "active", UnitFileState: "static" })).problem?.code).to.equal("UNIT_STATIC");
        expect((await run({ ActiveState: "active", UnitFileState: "static" }, { enabled: "keep" })).outcome).to.equal(
          "ok",
        );
      });

      it("restarts or reloads when what it watches changed", async () => {
        const running = { ActiveState: "active", UnitFileState: "enabled" };
        expect((await run(running, {}, { due: true })).outcome).to.equal("changed");
        expect(calls()).to.contain("\nrestart -- demo.service\n");
        await run(running, { onChange: "reload" }, { due: true });
        expect(calls()).to.contain("\nreload-or-restart -- demo.service\n");
      });

      it("does not restart what it has just started", async () => {
        const stopped = { ActiveState: "inactive", UnitFileState: "enabled" };
        expect((await run(stopped, {}, { due: true })).outcome).to.equal("changed");
        expect(calls()).to.contain("\nstart -- demo.service\n").and.not.to.contain("restart");
      });

      it("fails when the unit does not stay up", async () => {
        const done = await run(
          { ActiveState: "inactive", UnitFileState: "enabled", Breaks: "later" },
          { verifyFor: 1 },
        );
        expect(done.problem?.code).to.equal("SERVICE_UNSTABLE");
      });

      it("restarts what runs from elsewhere, also when no step before it changed anything", async () => {
        // Two processes that are surely there: this one, and init.
        const own = dirname(process.execPath);
        const foreign = {
          ActiveState: "active",
          UnitFileState: "enabled",
          MainPID: "1",
          Restarted: String(process.pid),
        };
        const done = await run(foreign, { runsFrom: own });
        expect([done.outcome, done.now["program"]], JSON.stringify(done)).to.deep.equal(["changed", own]);
        expect(calls().match(/^restart /gm)).to.have.length(1);
        const dry = await run(foreign, { runsFrom: own }, { dryRun: true });
        expect(dry.outcome).to.equal("would-change");
      });

      it("leaves what runs from there alone, asked once", async () => {
        const own = { ActiveState: "active", UnitFileState: "enabled", MainPID: String(process.pid) };
        expect((await run(own, { runsFrom: dirname(process.execPath) })).outcome).to.equal("ok");
        expect(calls()).to.equal("show -p ActiveState,LoadState,UnitFileState,MainPID -- demo.service\n");
      });

      it("fails when the restarted unit runs from elsewhere all the same", async () => {
        const stuck = { ActiveState: "active", UnitFileState: "enabled", MainPID: "1", Restarted: "1" };
        const done = await run(stuck, { runsFrom: "/nowhere" });
        expect(done.outcome).to.equal("failed");
        expect(done.now["program"]).not.to.equal("/nowhere");
      });

      it("says that a unit is not there", async () => {
        const done = await run({
          ActiveState: "inactive",
          LoadState: "not-found",
          UnitFileState: "",
          Breaks: "enable",
        });
        expect([done.outcome, done.have["active"]]).to.deep.equal(["failed", "not-found"]);
      });
    });
});
