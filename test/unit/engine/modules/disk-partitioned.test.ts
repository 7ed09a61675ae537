import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import { findDisk } from "#engine/step/fragments/disk.ts";
import { rawSh } from "#engine/step/sh.ts";
import { makeTempDir } from "#support/temp-dir.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const partitions = [{ name: "meta", size: "64M" }, { name: "data" }];

/** An lsblk that gives every disk of this machine the same serial. */
const lsblk = (serial: string): string =>
  `[ "$*" = "-dnPo NAME,SERIAL,WWN" ] && printf 'NAME="%s" SERIAL="${serial}" WWN=""\\n' $(ls /sys/block)`;

describe("disk.partitioned", () => {
  it("wants a table and partitions with GUIDs of its own", () => {
    const { want } = stepOf(diskPartitioned, { disk: { serial: "S1" }, partitions });
    expect(Object.keys(want)).to.deep.equal(["table", "partition meta", "partition data"]);
    expect(want["table"]).to.match(/^gpt [0-9a-f-]{36}$/);
    expect(want["partition meta"]).to.match(/^[0-9a-f-]{36} 0fc63daf-8483-4772-8e79-3d69d8477de4 64 MiB$/);
    expect(want["partition data"]).to.match(/ all$/);
  });

  it("takes no layout that could not be", () => {
    const accepts = (list: unknown): boolean =>
      diskPartitioned.args.safeParse({ disk: { serial: "S1" }, partitions: list }).success;
    expect(accepts([])).to.equal(false);
    expect(accepts([{ name: "a" }, { name: "b", size: "1G" }])).to.equal(false);
    expect(accepts([{ name: "a", size: "1G" }, { name: "a" }])).to.equal(false);
    expect(accepts([{ name: "a", size: 1000 }])).to.equal(false);
    expect(accepts([{ name: "a", size: "50%" }])).to.equal(false);
    expect(accepts([{ name: "-n", size: "1G" }])).to.equal(false);
    expect(accepts([{ name: "a", type: "ext4" }])).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename)) {
    it(`takes no serial of one disk for that of another that has none, on ${shell}`, async () => {
      const sysfs = await makeTempDir("sysfs");
      try {
        for (const [name, serial] of Object.entries({ "kcore-a": "S1\n", "kcore-b": undefined, zd0: "S1\n" })) {
          await mkdir(join(sysfs.path, name));
          await writeFile(join(sysfs.path, name, "size"), "8\n");
          if (serial !== undefined) await writeFile(join(sysfs.path, name, "serial"), serial);
        }
        const text = findDisk({ serial: "S1" }).toString().replaceAll("/sys/block/", `${sysfs.path}/`);
        const bin = { lsblk: "exit 1" };
        const { problem } = await runStepOn(shell, { want: { found: "" }, probe: rawSh(text) }, { bin });
        expect(problem?.message).to.equal("/dev/kcore-a, the disk with serial S1, is no block device");
      } finally {
        await sysfs.remove();
      }
    });

    it(`refuses a serial that no disk has, and lists those there are, on ${shell} (F-18)`, async () => {
      const step = stepOf(diskPartitioned, { disk: { serial: "no such disk" }, partitions });
      const run = await runStepOn(shell, step, {
        bin: { lsblk: lsblk("S-of-a-disk") },
      });
      expect(run.outcome).to.equal("failed");
      expect(run.problem?.code).to.equal("DISK_NOT_FOUND");
      expect(run.problem?.message).to.equal("no disk with serial no such disk");
      expect(run.problem?.detail).to.contain("S-of-a-disk");
    });

    it(`refuses a serial that several disks have, on ${shell} (F-18)`, async () => {
      const step = stepOf(diskPartitioned, { disk: { serial: "twin" }, partitions });
      const run = await runStepOn(shell, step, {
        bin: { lsblk: lsblk("twin") },
      });
      expect(run.problem?.code).to.equal("DISK_AMBIGUOUS");
    });
  }
});
