import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { diskFunctions } from "#engine/step/fragments/disk-functions.ts";
import { rawSh, sh } from "#engine/step/sh.ts";
import { shellsOf } from "#support/shells.ts";
import { runStepOn } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("bytes_at of the functions for disks", () => {
  const at = folderOfEachTest("bytes");

  for (const shell of shellsOf(import.meta.filename)) {
    /** The line of bytes_at about the first two blocks of a device with these bytes; `dd`: a stand-in. */
    const saidOf = async (bytes: Uint8Array, dd?: string): Promise<string | undefined> => {
      writeFileSync(at("disk"), bytes);
      const probe = sh`${diskFunctions}
${rawSh(dd === undefined ? "" : `dd() { ${dd}; }`)}
fact said "$(bytes_at ${at("disk")} 0 2 head)"`;
      const { have } = await runStepOn(shell, { want: { said: "" }, probe });
      return have["said"]?.replace(at("disk"), "DISK");
    };

    it(`says nothing of zeros, and names other bytes by their hash, on ${shell}`, async () => {
      const bytes = new Uint8Array(12_288);
      bytes[8192] = 1;
      expect(await saidOf(bytes)).to.equal("");
      bytes[8191] = 1;
      const hash = createHash("sha256").update(bytes.subarray(0, 8192)).digest("hex").slice(0, 12);
      expect(await saidOf(bytes)).to.equal(`DISK holds bytes of unknown meaning in the head (${hash})`);
    });

    it(`never takes a device for blank that cannot be read to the end, on ${shell}`, async () => {
      const zeros = new Uint8Array(8192);
      const fails = "head -c 4096 /dev/zero; echo first >&2; echo no such luck >&2; return 1";
      expect(await saidOf(zeros, fails)).to.equal("DISK cannot be read: no such luck");
      // A read that fails only once.
      const once = `[ -e ${at("failed")} ] || { : >${at("failed")}; return 1; }; head -c 8192 /dev/zero`;
      expect(await saidOf(zeros, once)).to.match(/^DISK holds bytes of unknown meaning/);
    });
  }
});
