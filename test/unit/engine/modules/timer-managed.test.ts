import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { timerManaged } from "#engine/modules/timer-managed.ts";
import { serviceText } from "#engine/step/fragments/timer.ts";
import { inEtc, type Etc } from "#support/etc.ts";
import { fakeSystemctl } from "#support/systemctl.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const job = { name: "demo", command: ["/bin/true"], onCalendar: "Mon..Fri 02:30" };

describe("timer.managed", () => {
  it("writes a timer", () => {
    const { shown } = stepOf(timerManaged, {
      ...job,
      onCalendar: ["daily", "hourly"],
      onBootSec: "15min",
      onUnitActiveSec: "1h 30s",
      randomizedDelay: "5min",
      persistent: true,
      description: "100%",
    });
    expect(shown).to.equal(`# Managed by kcore.
[Unit]
Description=100%%

[Timer]
Unit=demo.service
OnCalendar=daily
OnCalendar=hourly
OnBootSec=15min
OnUnitActiveSec=1h 30s
RandomizedDelaySec=5min
Persistent=yes

[Install]
WantedBy=timers.target
`);
  });

  it("writes a command so that systemd takes nothing in it for its own", () => {
    const text = serviceText({
      name: "demo",
      command: String.raw`echo "$(date +%F)" 'a\b' ;x`,
      user: "ops",
      environment: { A: 'say "5%"' },
    });
    expect(text).to.equal(String.raw`# Managed by kcore.
[Unit]
Description=demo

[Service]
Type=oneshot
User=ops
Environment="A=say \"5%%\""
ExecStart=/bin/sh -c "echo \"$$(date +%%F)\" 'a\\b' ;x"
`);
  });

  it("refuses what is no timer, and what does not go together", () => {
    for (const args of [
      { name: "a.timer" },
      { name: "a/b" },
      { service: "other" },
      { command: undefined },
      { command: "a\nb" },
      { command: ["true"] },
      { onCalendar: undefined },
      { onCalendar: undefined, onUnitActiveSec: "1h" },
      { onCalendar: undefined, onBootSec: "1h", persistent: true },
      { onBootSec: "soon" },
      { command: undefined, service: "other", user: "ops" },
      { state: "absent" },
    ])
      expect(timerManaged.args.safeParse({ ...job, ...args }).success, JSON.stringify(args)).to.equal(false);
    expect(timerManaged.args.safeParse({ name: "demo", state: "absent" }).success).to.equal(true);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let etc: Etc;
      const unit = (text: string): void => writeFileSync(join(etc.folder, "unit"), text);
      beforeEach(async () => {
        etc = await inEtc({ "systemd/system": {} });
        unit("ActiveState=inactive\n");
      });
      afterEach(() => etc.remove());
      // systemd-analyze is the real one; systemctl stands for one unit, which is told apart by no suffix.
      const run = (args: object, options = {}) => {
        const fakes = fakeSystemctl(etc.folder);
        const bin = {
          ...fakes,
          systemctl: (fakes["systemctl"] ?? "").replace("demo.service)", "demo.service | demo.timer | --now)"),
        };
        return runStepOn(etc.shell(shell), stepOf(timerManaged, args), { bin, ...options });
      };
      const calls = (): string => readFileSync(join(etc.folder, "calls"), "utf8");

      it("refuses a user who is not there before it writes anything", async () => {
        for (const dryRun of [true, false]) {
          const { problem } = await run({ ...job, user: "nobody-here" }, { dryRun });
          expect([problem?.code, problem?.message.startsWith("there is no user nobody-here")]).to.deep.equal([
            "USER_MISSING",
            true,
          ]);
        }
        expect(etc.read("systemd/system/demo.service")).to.equal(undefined);
        expect((await run({ ...job, user: "daemon" }, { dryRun: true })).outcome).to.equal("would-change");
      });

      it("writes both, reads them once, enables and starts the timer, and finds it in order", async () => {
        const done = await run(job);
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(etc.read("systemd/system/demo.service")).to.contain("\nExecStart=/bin/true\n");
        expect(etc.read("systemd/system/demo.timer")).to.contain("\nOnCalendar=Mon..Fri 02:30\n");
        expect(calls()).to.contain("daemon-reload\nenable -- demo.timer\nrestart -- demo.timer\n");
        expect((await run(job)).outcome).to.equal("ok");
      });

      it("mends what others changed, and names it; a timer that runs is restarted for a new text alone", async () => {
        await run(job);
        etc.write("systemd/system/demo.service", "# Managed by kcore.\n[Service]\nExecStart=/bin/false\n");
        const drift = await run(job, { dryRun: true });
        expect(drift.outcome).to.equal("would-change");
        expect(drift.have["service"]).to.match(/^sha256:\w+$/);
        expect(drift.have).to.include({ "service mode": "0644", "service owner": "root:root" });
        writeFileSync(join(etc.folder, "calls"), "");
        expect((await run(job)).outcome).to.equal("changed");
        expect(calls()).to.contain("start -- demo.timer\n").and.not.to.contain("restart");
        unit("ActiveState=inactive\nUnitFileState=enabled\n");
        const stopped = await run(job);
        expect([stopped.outcome, stopped.have["active"], stopped.now["active"]]).to.deep.equal([
          "changed",
          "inactive",
          "active",
        ]);
      });

      it("refuses what systemd does not accept, in a dry run too, with its words", async () => {
        for (const dryRun of [true, false]) {
          const bad = await run({ ...job, onCalendar: "Someday" }, { dryRun });
          expect([bad.outcome, bad.problem?.code], JSON.stringify(bad)).to.deep.equal(["failed", "UNIT_INVALID"]);
          expect(bad.problem?.detail).to.contain("Someday");
        }
        expect(etc.read("systemd/system/demo.timer")).to.equal(undefined);
      });

      it("refuses to take over somebody else's service, but starts it", async () => {
        unit("ActiveState=inactive\nFragmentPath=/lib/systemd/system/demo.service\n");
        const taken = await run(job);
        expect([taken.problem?.code, etc.read("systemd/system/demo.timer")]).to.deep.equal([
          "FILE_IN_THE_WAY",
          undefined,
        ]);
        const starts = { name: "demo", service: "demo", onBootSec: "1h" };
        etc.write("systemd/system/demo.service", "[Service]\nExecStart=/bin/true\n");
        expect((await run(starts)).outcome).to.equal("changed");
        expect((await run(starts)).outcome).to.equal("ok");
        expect(etc.read("systemd/system/demo.service")).to.equal("[Service]\nExecStart=/bin/true\n");
      });

      it("takes away a timer that had failed, and names somebody else's that it cannot take away", async () => {
        await run(job);
        unit("ActiveState=failed\nUnitFileState=enabled\n");
        await run({ name: "demo", state: "absent" });
        expect(calls()).to.contain("daemon-reload\nreset-failed -- demo.timer\n");
        unit("ActiveState=active\nUnitFileState=enabled\nFragmentPath=/lib/systemd/system/demo.timer\n");
        for (const dryRun of [true, false]) {
          const { problem } = await run({ name: "demo", state: "absent" }, { dryRun });
          expect([problem?.code, problem?.message.includes("service.stopped")]).to.deep.equal([
            "FILE_IN_THE_WAY",
            true,
          ]);
        }
      });

      it("goes away with its own service, and leaves another one", async () => {
        await run(job);
        const gone = await run({ name: "demo", state: "absent" }, { dryRun: true });
        expect([gone.outcome, gone.have["service"]]).to.deep.equal(["would-change", "ours"]);
        await run({ name: "demo", state: "absent" });
        expect(["timer", "service"].map((one) => etc.read(`systemd/system/demo.${one}`))).to.deep.equal([
          undefined,
          undefined,
        ]);
        unit("ActiveState=inactive\n");
        expect((await run({ name: "demo", state: "absent" })).outcome).to.equal("ok");
        etc.write("systemd/system/demo.service", "[Service]\nExecStart=/bin/true\n");
        expect((await run({ name: "demo", state: "absent" })).outcome).to.equal("ok");
      });
    });
});
