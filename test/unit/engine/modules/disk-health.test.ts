import { expect } from "chai";
import { diskHealth } from "#engine/modules/disk-health.ts";
import { rawSh } from "#engine/step/sh.ts";
import { runStepOn, stepOf, type StepRun } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

/** What smartctl 7.3 prints of an emulated NVMe disk, good and with a critical warning; of ATA and SAS disks, the lines that are read. */
const nvme = (verdict: string, used = "3%"): string => `=== START OF SMART DATA SECTION ===
SMART overall-health self-assessment test result: ${verdict}

SMART/Health Information (NVMe Log 0x02)
Critical Warning:                   0x00
Temperature:                        50 Celsius
Available Spare:                    100%
Percentage Used:                    ${used}
Data Units Read:                    3,141 [1.53 GB]
Media and Data Integrity Errors:    0
`;
const ata = (pending: string): string => `SMART overall-health self-assessment test result: PASSED

ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE
  5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       0
194 Temperature_Celsius     0x0022   067   050   000    Old_age   Always       -       33 (Min/Max 18/50)
197 Current_Pending_Sector  0x0012   100   100   000    Old_age   Always       -       ${pending}
198 Offline_Uncorrectable   0x0010   100   100   000    Old_age   Offline      -       0
`;
const sas = (defects: string): string => `SMART Health Status: OK
Percentage used endurance indicator: 12%
Current Drive Temperature:     31 C
Elements in grown defect list: ${defects}
`;
const none = "/dev/vdb: Unable to detect device type\nPlease specify device type with the -d option.\n";

describe("disk.health", () => {
  it("wants a good disk", () => {
    expect(stepOf(diskHealth, { disk: { serial: "S1" } }).want).to.deep.equal({ health: "good" });
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      /** The step on a disk that was found, with these words of smartctl's. */
      const run = async (told: string, args: object = {}, status = 0): Promise<StepRun> => {
        const step = stepOf(diskHealth, { disk: { serial: "S1" }, ...args });
        const [, body = ""] = step.probe.masked.split("find_disk serial S1\n");
        expect(body).not.to.equal("");
        const probe = rawSh(`disk=/dev/null\n${body}`);
        return runStepOn(shell, { ...step, probe }, { bin: { smartctl: `cat <<'END'\n${told}END\nexit ${status}` } });
      };

      it("reads NVMe, ATA and SAS disks", async () => {
        for (const [told, wear, warm] of [
          [nvme("PASSED"), "3", "50"],
          [ata("0"), "unknown", "33"],
          [sas("0"), "12", "31"],
        ] as const) {
          const { outcome, have } = await run(told);
          expect([outcome, have["bad sectors"], have["wear"], have["temperature"]], told).to.deep.equal([
            "ok",
            "0",
            wear,
            warm,
          ]);
        }
      });

      it("refuses what is failing, and says why", async () => {
        for (const [told, args, status, why] of [
          [nvme("FAILED!"), {}, 8, "it says FAILED!"],
          [nvme("PASSED", "101%"), {}, 0, "101 percent of its life are used"],
          [nvme("PASSED"), { maxTemperature: 45 }, 0, "it has 50 degrees"],
          [ata("12"), {}, 0, "12 bad sectors"],
          [ata("0"), {}, 16, "an attribute is at its threshold"],
          [sas("4"), { maxBadSectors: 3 }, 0, "4 bad sectors"],
          [none, { required: true }, 1, "it has no SMART"],
        ] as const) {
          const { problem } = await run(told, args, status);
          expect([problem?.code, problem?.message], told).to.deep.equal([
            "DISK_FAILING",
            `the disk with the serial S1 is not healthy: ${why}`,
          ]);
          expect(problem?.detail).to.equal(told.trimEnd());
        }
      });

      it("has nothing against a disk that cannot be asked", async () => {
        const { outcome, have } = await run(none, {}, 1);
        expect([outcome, have["smart"]]).to.deep.equal(["ok", "none"]);
      });
    });
});
