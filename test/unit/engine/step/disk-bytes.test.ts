import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { diskFunctions } from "#engine/step/fragments/disk-functions.ts";
import { rawSh, sh } from "#engine/step/sh.ts";
import { shellsOf } from "#support/shells.ts";
import { runStepOn } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("bytes_at of the disk functions", () => {
  const at = folderOfEachTest("bytes");

  for (const shell of shellsOf(import.meta.filename)) {
    /** The line of bytes_at about the first two blocks of a device with these bytes; `dd`: a stand-in. */
    const findingOf = async (bytes: Uint8Array, dd?: string): Promise<string | undefined> => {
      writeFileSync(at("disk"), bytes);
      const probe = sh`${diskFunctions}
${rawSh(dd === undefined ? "" : `dd() { ${dd}; }`)}
fact finding "$(bytes_at ${at("disk")} 0 2 head)"`;
      const { have } = await runStepOn(shell, { want: { finding: "" }, probe });
      return have["finding"]?.replace(at("disk"), "DISK");
    };

    it(`prints nothing for zeros, and the hash of other bytes, on ${shell}`, async () => {
      const bytes = new Uint8Array(12_288);
      bytes[8192] = 1;
      expect(await findingOf(bytes)).to.equal("");
      bytes[8191] = 1;
      const hash = createHash("sha256").update(bytes.subarray(0, 8192)).digest("hex").slice(0, 12);
      expect(await findingOf(bytes)).to.equal(`DISK holds bytes of unknown meaning in the head (${hash})`);
    });

    it(`never reports a device as blank that cannot be read to the end, on ${shell}`, async () => {
      const zeros = new Uint8Array(8192);
      const fails = "head -c 4096 /dev/zero; echo first >&2; echo no such luck >&2; return 1";
      expect(await findingOf(zeros, fails)).to.equal("DISK cannot be read: no such luck");
      // A read that fails only once.
      const once = `[ -e ${at("failed")} ] || { : >${at("failed")}; return 1; }; head -c 8192 /dev/zero`;
      expect(await findingOf(zeros, once)).to.match(/^DISK holds bytes of unknown meaning/);
    });
  }
});
