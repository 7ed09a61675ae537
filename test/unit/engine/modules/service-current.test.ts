import { expect } from "chai";
import { serviceCurrent } from "#engine/modules/service-current.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("service.current", () => {
  it("wants that nothing runs what was replaced", () => {
    expect(stepOf(serviceCurrent, {}).want).to.deep.equal({ replaced: "none" });
  });

  // BusyBox takes its own grep, whatever stands on PATH; lab machines try it for real.
  for (const shell of shellsOf(import.meta.filename).filter((name) => !name.startsWith("busybox")))
    it(`finds the units of processes that run replaced files, and tells of those it leaves, on ${shell}`, async () => {
      // What grep finds in /proc is this machine's own; which processes they are is answered by the kernel.
      const bin = {
        systemctl: "exit 64",
        grep: `[ "$1" = -lE ] && echo /proc/71/maps && echo /proc/72/maps && echo /proc/73/maps && echo /proc/1/maps`,
        sed: `for file; do :; done
case $file in
  /proc/71/cgroup) echo ssh.service ;;
  /proc/72/cgroup) echo dbus.service ;;
  /proc/73/cgroup) echo mine.service ;;
  *) exit 64 ;;
esac`,
      };
      const step = stepOf(serviceCurrent, { except: ["mine"] });
      const { outcome, have } = await runStepOn(shell, step, { dryRun: true, bin });
      expect([outcome, have]).to.deep.equal([
        "would-change",
        { left: "dbus.service mine.service", replaced: "init ssh.service" },
      ]);
    });
});
