import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { registry } from "#engine/modules/registry.ts";
import { unmark } from "#engine/step/fragments/unmark.ts";
import { sh } from "#engine/step/sh.ts";
import { contextOf, shells, stepOf } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const disk = { serial: "S1" };
const on = { disk, partition: "data" };
/** Arguments of modules whose result a mark records; marks in their sh, if they are not `$mark`. */
const makers: Readonly<Record<string, readonly [args: object, words?: string]>> = {
  "disk.cleared": [{ disks: [disk] }],
  "disk.partitioned": [{ disk, partitions: [{ name: "data" }] }],
  "filesystem.formatted": [on],
  "lvm.physical_volume": [on],
  "swap.enabled": [on],
  "luks.opened": [on],
  "disk.restored": [
    { disk, size: 1024, source: "pieces.gz", pieces: [{ offset: 0, length: 512, sha256: "0".repeat(64) }] },
  ],
  "md.array": [{ name: "a", disks: [disk, { serial: "S2" }], partition: "data" }, '"$making"'],
  "zfs.pool": [{ disks: [disk], partition: "data" }, '"$@"'],
};

describe("the mark of an unfinished change to a disk", () => {
  const at = folderOfEachTest("mark");

  for (const shell of shells)
    it(`is removed after the disk is flushed, and flushed itself, on ${shell}`, () => {
      const mark = at("mark");
      writeFileSync(mark, "");
      const sync = `sync() { if [ -e '${mark}' ]; then echo marked; else echo gone; fi; }`;
      const text = `${sync}\nmark='${mark}'\n${String(unmark(sh`"$mark"`))}`;
      const { stdout, stderr } = spawnSync("/bin/sh", ["-c", `exec ${shell} -c "$0"`, text], { encoding: "utf8" });
      expect([stdout, stderr]).to.deep.equal(["marked\ngone\n", ""]);
    });

  for (const [name, [args, words = '"$mark"']] of Object.entries(makers))
    it(`is removed by ${name} between two flushes only`, async () => {
      const module = await registry.get(name)?.();
      if (!module) throw new Error(`there is no module ${name}`);
      const apply = String(stepOf(module, args, contextOf({ files: { "pieces.gz": "" } })).apply);
      const removal = `sync && rm -f ${words} && sync || exit 1`;
      expect(apply).to.include(removal);
      expect(apply.replaceAll(removal, "")).to.not.match(/rm -f [^\n]*"\$(?:mark|making)"/);
    });
});
