import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { findDisk } from "#engine/step/fragments/disk.ts";
import { rawSh } from "#engine/step/sh.ts";
import { makeTempDir } from "#support/temp-dir.ts";
import { runStepOn } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("disk.partitioned", () => {
  for (const shell of shellsOf(import.meta.filename))
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
});
