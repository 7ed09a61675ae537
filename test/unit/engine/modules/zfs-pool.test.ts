import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { zfsPool } from "#engine/modules/zfs-pool.ts";
import { poolFunctions } from "#engine/step/fragments/zfs.ts";
import { poolGuid, poolMark } from "#engine/step/zfs-names.ts";
import { rawSh, sh } from "#engine/step/sh.ts";
import type { Step } from "#engine/step/define.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const mark = poolMark(poolGuid({ node: "n1" }, "tank0"));

/** `zpool status`, first with GUIDs, then with devices: two mirrors, one of them with a disk being replaced, and a log. */
const status = (flag: string): string => {
  const [first, replaced, log] = flag === "-g" ? ["11", "22", "33"] : ["mirror-0", "mirror-1", "/dev/vdz1"];
  const leaf = (guid: string, device: string): string => (flag === "-g" ? guid : device);
  return `  pool: tank0
 state: DEGRADED
config:

\tNAME  STATE  READ WRITE CKSUM
\ttank0  DEGRADED  0 0 0
\t  ${first}  ONLINE  0 0 0
\t    ${leaf("111", "/dev/vdb1")}  ONLINE  0 0 0
\t    ${leaf("112", "/dev/vdc1")}  OFFLINE  0 0 0
\t  ${replaced}  DEGRADED  0 0 0
\t    ${leaf("221", "/dev/vdd1")}  ONLINE  0 0 0
\t    ${leaf("222", "replacing-1")}  DEGRADED  0 0 0
\t      ${leaf("223", "223")}  UNAVAIL  0 0 0  was /dev/vde1
\t      ${leaf("224", "/dev/vdf1")}  ONLINE  0 0 0  (resilvering)
\tlogs
\t  ${log}  ONLINE  0 0 0

errors: No known data errors`;
};

describe("zfs.pool", () => {
  const at = folderOfEachTest("zfs-pool");

  it("clears the first and last MiB of a granted member of any size", async () => {
    const MiB = 2 ** 20;
    const size = 3 * MiB + 3 * 2 ** 18;
    writeFileSync(at("device"), Buffer.alloc(size, 1));
    const { apply } = stepOf(zfsPool, { disks: [{ serial: "S1" }], partition: "zfs" });
    const [clear = ""] = /# The first and the last MiB.*?\n {2}done/s.exec(String(apply)) ?? [];
    const probe = rawSh(`device=${at("device")}\n${clear}\nfact cleared yes`);
    const { have, stderr } = await runStepOn(
      "dash",
      { want: { cleared: "yes" }, probe },
      { bin: { blockdev: `echo ${size}` } },
    );
    expect(have, stderr).to.deep.equal({ cleared: "yes" });
    const bytes = readFileSync(at("device"));
    expect(bytes).to.have.lengthOf(size);
    expect([bytes.lastIndexOf(0, size - MiB - 1), bytes.indexOf(1)]).to.deep.equal([MiB - 1, MiB]);
    expect(bytes.lastIndexOf(1)).to.equal(size - MiB - 1);
  });

  for (const shell of shellsOf(import.meta.filename)) {
    it(`lists the members of a pool with state and vdev, on ${shell}`, async () => {
      const step: Step = {
        want: { vdevs: "" },
        probe: sh`${poolFunctions({ name: "tank0", mark, making: "x" })}
read_pool
fact vdevs "$vdevs"
fact health "$health"`,
      };
      const zpool = `case "$1 $2" in
  'list -H') printf '77\\tDEGRADED\\n' ;;
  'get -H') echo '${mark}' ;;
  'status -g') cat <<'END'\n${status("-g")}\nEND\n;;
  'status -LP') cat <<'END'\n${status("-LP")}\nEND\n;;
  *) exit 2 ;;
esac`;
      const { have, stderr } = await runStepOn(shell, step, { bin: { zpool } });
      expect(have["health"], stderr).to.equal("DEGRADED");
      expect(have["vdevs"]?.split("\n")).to.deep.equal([
        "111 ONLINE 11 mirror 2 /dev/vdb1",
        "112 OFFLINE 11 mirror 2 /dev/vdc1",
        "221 ONLINE 22 mirror 2 /dev/vdd1",
        "223 UNAVAIL 22 mirror 2 223",
        "224 ONLINE 22 mirror 2 /dev/vdf1",
      ]);
    });
  }
});
