import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import { exclusiveOpen } from "#engine/step/fragments/exclusive-open.ts";
import { diskFunctions } from "#engine/step/fragments/disk-functions.ts";
import { sh } from "#engine/step/sh.ts";
import { useLoopDisk } from "#support/loop-disk.ts";
import { shellsOf } from "#support/shells.ts";
import { runStepOn, stepOf } from "#support/steps.ts";

/** Uses a disk of this machine: a file behind a loop device. */
describe("a disk that is locked for exclusive use", () => {
  const disk = useLoopDisk("alone");

  const facts = async (shell: string, device: string): Promise<Readonly<Record<string, string>>> => {
    const probe = sh`${diskFunctions}
${exclusiveOpen}
hold ${device} || :
fact lockError "\${unheld:-nothing}"
wipefs -a -n ${device} >/dev/null 2>&1; fact other "$?"
echo written | dd of=${device} conv=notrunc 2>/dev/null; fact writer "$?"
release
fact left "$(ls -l /proc/$$/fd | grep -c " ${device}$")"
wipefs -a -n ${device} >/dev/null 2>&1; fact after "$?"`;
    const step = await runStepOn(shell, { want: { after: "0" }, probe });
    if (step.have["lockError"] === undefined) throw new Error(JSON.stringify(step));
    return step.have;
  };

  for (const shell of shellsOf(import.meta.filename)) {
    it(`is closed to other openers until its release, on ${shell}`, async () => {
      const found = await facts(shell, disk().device);
      expect(found).to.include({ lockError: "nothing", other: "1", writer: "0", left: "0", after: "0" });
    });

    it(`is not wiped when data arrived between guard and lock, on ${shell}`, async () => {
      disk().write(new Uint8Array(disk().size));
      const { device, byId } = disk();
      const late = `case $* in *--lock=*) echo dear | dd of=${device} conv=notrunc,fsync 2>/dev/null ;; esac`;
      const bin = { wipefs: `${late}; exec /usr/sbin/wipefs "$@"`, sgdisk: "echo written >&2" };
      const step = stepOf(diskPartitioned, { disk: { byId }, partitions: [{ name: "data" }] });
      const run = await runStepOn(shell, step, { bin, stateDir: disk().folder });
      expect(run.problem?.code, JSON.stringify(run)).to.equal("DISK_HAS_DATA");
      expect(run.stderr).not.to.contain("written");
    });

    it(`is not locked while it is mounted, on ${shell}`, async () => {
      spawnSync("mkfs.ext4", ["-qF", disk().device]);
      const place = mkdtempSync(join(disk().folder, "mount-"));
      // In a mount namespace of its own: a namespace that another test makes would keep a copy of the mount, and thus the disk.
      const text = 'mount -r "$0" "$1" && echo there; read -r _; umount "$1"';
      const args = ["-m", "--propagation", "private", "sh", "-c", text, disk().device, place];
      const holder = spawn("unshare", args, { stdio: ["pipe", "pipe", "inherit"] });
      const ended = once(holder, "exit");
      await once(holder.stdout, "data");
      try {
        const { lockError, left } = await facts(shell, disk().device);
        expect(lockError).to.match(/cannot be opened alone: wipefs: error: .* busy$/);
        expect(left).to.equal("0");
      } finally {
        holder.stdin.end();
        await ended;
      }
    });
  }
});
