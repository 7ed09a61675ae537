import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { clockSynchronized } from "#engine/modules/clock-synchronized.ts";
import { makePrivatePlaces, type PrivatePlaces } from "#support/private-places.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const servers = ["ntp1.example.org", "2001:db8::7b"];
const file = "/etc/systemd/timesyncd.conf.d/60-kcore.conf";

describe("clock.synchronized", () => {
  it("wants a service that runs, its servers, and the clock right", () => {
    expect(stepOf(clockSynchronized, { servers }).want).to.deep.equal({
      active: "active",
      enabled: "enabled",
      servers: "ntp1.example.org 2001:db8::7b",
      synchronized: "yes",
    });
    expect(stepOf(clockSynchronized, { wait: 0 }).want).to.deep.equal({ active: "active", enabled: "enabled" });
  });

  it("refuses what is no server, and an empty list", () => {
    for (const args of [
      { servers: [] },
      { servers: ["a b"] },
      { servers: ["-a"] },
      { servers: ["a\nb"] },
      { wait: -1 },
    ])
      expect(clockSynchronized.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let places: PrivatePlaces;
      let folder: TempDir;
      beforeEach(async () => {
        folder = await makeTempDir("clock");
        mkdirSync(`${folder.path}/units`);
        places = makePrivatePlaces({ "/etc": { "systemd/timesyncd.conf": "" } });
      });
      afterEach(async () => {
        places.remove();
        await folder.remove();
      });
      /** A unit: whether it runs, and whether it does so from boot. */
      const unit = (name: string, active: string, enabled: string): void => {
        writeFileSync(`${folder.path}/units/${name}`, `ActiveState=${active}\nUnitFileState=${enabled}\n`);
      };
      const run = (args: object, options: StepRunOptions = {}) =>
        runStepOn(places.shell(shell), stepOf(clockSynchronized, { wait: 1, ...args }), {
          bin: {
            systemctl: `cd ${folder.path}/units || exit
echo "$*" >>../calls
set_one() { sed "s/^$1=.*/$1=$2/" "$3" >../new && mv ../new "$3"; }
case $* in
  "show -p Id,LoadState,ActiveState,UnitFileState -- "*)
    shift 4
    for name; do
      if [ -e "$name" ]; then cat "$name"; echo LoadState=loaded; else echo LoadState=not-found; fi
      printf 'Id=%s\\n\\n' "$name"
    done
    ;;
  "enable -- "*) set_one UnitFileState enabled "$3" ;;
  "start -- "* | "restart -- "*) [ -e ../container ] || set_one ActiveState active "$3" ;;
  "-q is-active -- "*) grep -q =active "$4" ;;
  *) exit 9 ;;
esac`,
            timedatectl: `case $* in
  "show -p NTPSynchronized") [ -e ${folder.path}/wrong ] && echo NTPSynchronized=no || echo NTPSynchronized=yes ;;
  timesync-status) echo "Server: n/a" ;;
esac`,
            chronyc: `[ "$*" = "-n tracking" ] && echo "Leap status     : Normal"`,
          },
          ...options,
        });
      const calls = (): string => readFileSync(`${folder.path}/calls`, "utf8");

      it("gives timesyncd its servers, starts it at boot and anew, and finds it in order", async () => {
        unit("systemd-timesyncd.service", "active", "disabled");
        const dry = await run({ servers }, { dryRun: true });
        expect(dry.outcome, JSON.stringify(dry)).to.equal("would-change");
        expect(dry.have).to.include({ active: "active", enabled: "disabled", servers: "none", synchronized: "yes" });
        const done = await run({ servers });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(places.read(file)).to.equal("# made by kcore\n[Time]\nNTP=\nNTP=ntp1.example.org 2001:db8::7b\n");
        expect(calls()).to.contain("enable -- systemd-timesyncd.service\nrestart -- systemd-timesyncd.service\n");
        expect((await run({ servers })).outcome).to.equal("ok");
        expect((await run({ servers: ["other"] }, { dryRun: true })).have["servers"]).to.equal(servers.join(" "));
      });

      it("takes chrony where it is installed, and no folder for granted", async () => {
        unit("chrony.service", "inactive", "enabled");
        unit("systemd-timesyncd.service", "inactive", "disabled");
        expect((await run({ servers })).problem?.code).to.equal("FILE_NO_PARENT");
        mkdirSync(places.path("/etc/chrony/sources.d"), { recursive: true });
        const done = await run({ servers });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(places.read("/etc/chrony/sources.d/kcore.sources")).to.equal(
          "# made by kcore\nserver ntp1.example.org iburst\nserver 2001:db8::7b iburst\n",
        );
        expect((await run({ servers })).outcome).to.equal("ok");
        expect(existsSync(places.path(file))).to.equal(false);
      });

      it("refuses beside a second time service, and without any", async () => {
        expect((await run({})).problem?.code).to.equal("TOOL_MISSING");
        unit("systemd-timesyncd.service", "active", "enabled");
        unit("ntpsec.service", "active", "enabled");
        expect((await run({ servers })).problem).to.include({
          code: "TIME_SERVICE_CONFLICT",
          message: "ntpsec.service runs beside systemd-timesyncd.service: two set the clock against each other",
        });
        unit("chrony.service", "active", "enabled");
        expect((await run({ service: "timesyncd", servers })).problem?.code).to.equal("TIME_SERVICE_CONFLICT");
      });

      it("tells a clock that is not right within the time, and a service that a container does not run", async () => {
        unit("systemd-timesyncd.service", "active", "enabled");
        writeFileSync(`${folder.path}/wrong`, "");
        const { problem, have } = await run({});
        expect(have["synchronized"]).to.equal("no");
        expect(problem).to.deep.equal({
          code: "CLOCK_UNSYNCHRONIZED",
          message: "the clock was not synchronized within 1 s",
          detail: "Server: n/a",
        });
        expect((await run({ wait: 0 })).outcome).to.equal("ok");
        unit("systemd-timesyncd.service", "inactive", "enabled");
        writeFileSync(`${folder.path}/container`, "");
        expect((await run({ wait: 0 })).problem?.code).to.equal("SERVICE_FAILED");
      });
    });
});
