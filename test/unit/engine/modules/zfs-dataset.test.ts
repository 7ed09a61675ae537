import { expect } from "chai";
import { zfsDataset } from "#engine/modules/zfs-dataset.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const images = { name: "guests/images", properties: { recordsize: "1M", quota: "none", atime: "off" } };
const volume = { name: "vol0", size: "40M" };

/** What the node's ZFS says of the dataset; the programs that change something say so. */
const zfs = (
  properties: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>> = {},
): StepRunOptions => ({
  bin: {
    zpool: "echo tank0",
    zfs: `case $* in
  *' all '*) ${Object.keys(properties).length === 0 ? "exit 1" : `printf '%s\\t%s\\n' ${Object.entries(properties).flat().join(" ")}`} ;;
  *available*) echo 104857600 ;;
  *) echo "zfs $*" ;;
esac`,
    modprobe: "exit 0",
    udevadm: "exit 0",
    ...more,
  },
});

describe("zfs.dataset", () => {
  it("wants properties as ZFS shows them, in bytes where they say how much", () => {
    expect(stepOf(zfsDataset, { ...images, mountpoint: "/srv/images" }).want).to.deep.equal({
      type: "filesystem",
      mounted: "yes",
      "property mountpoint": "/srv/images",
      "property recordsize": "1048576",
      "property quota": "0",
      "property atime": "off",
    });
    expect(stepOf(zfsDataset, volume).want).to.deep.equal({ type: "volume", size: "40 MiB" });
  });

  it("refuses names that are none, volumes with a mount point, and properties that are other arguments", () => {
    const accepts = (args: object): boolean => zfsDataset.args.safeParse(args).success;
    for (const args of [
      { name: "a@b" },
      { name: "/a" },
      { name: "a//b" },
      { name: "-o" },
      { ...volume, mountpoint: "/a" },
      { ...volume, size: "100K" },
      { name: "a", properties: { volsize: "1G" } },
      { name: "a", properties: { keyformat: "passphrase" } },
      { name: "a", properties: { quota: "1G\nx" } },
    ])
      expect(accepts(args), JSON.stringify(args)).to.equal(false);
    expect(accepts({ name: "a", properties: { copies: 2, "org.example:owner": "me" } })).to.equal(true);
  });

  // BusyBox has a modprobe of its own, which no test can replace.
  for (const shell of shellsOf(import.meta.filename).filter((name) => name !== "busybox sh"))
    describe(`on ${shell}`, () => {
      const there = { type: "filesystem", recordsize: "1048576", quota: "0", atime: "off" };
      it("is in order when all is as wanted, and sets what is not", async () => {
        expect((await runStepOn(shell, stepOf(zfsDataset, images), zfs(there))).outcome).to.equal("ok");
        const run = await runStepOn(shell, stepOf(zfsDataset, images), zfs({ ...there, atime: "on" }));
        expect(run.stdout.trim()).to.equal("zfs set atime=off tank0/guests/images");
      });

      it("makes what is not there, and grows a volume", async () => {
        const made = await runStepOn(shell, stepOf(zfsDataset, volume), zfs({}));
        expect(made.stdout).to.contain("zfs create -p -V 41943040 tank0/vol0");
        const small = { type: "volume", volsize: "20971520", volblocksize: "8192" };
        const grown = await runStepOn(shell, stepOf(zfsDataset, volume), zfs(small));
        expect(grown.stdout).to.contain("zfs set volsize=41943040 tank0/vol0");
      });

      for (const [what, args, there, code, more] of [
        ["a volume in the place of a filesystem", images, { type: "volume" }, "ZFS_DATASET_DIFFERS", {}],
        [
          "to shrink a volume",
          volume,
          { type: "volume", volsize: "83886080", volblocksize: "8192" },
          "ZFS_DATASET_DIFFERS",
          {},
        ],
        ["what the pool has no room for", { ...volume, size: "1G" }, {}, "ZFS_NO_SPACE", {}],
        ["a pool that is not there", volume, {}, "ZFS_POOL_MISSING", { zpool: "exit 0" }],
        ["a kernel without the module", volume, {}, "ZFS_MODULE_MISSING", { modprobe: "exit 1" }],
      ] as const)
        it(`refuses ${what}`, async () => {
          const run = await runStepOn(shell, stepOf(zfsDataset, args), zfs(there, more));
          expect(run.problem?.code, run.stderr).to.equal(code);
          expect(run.stdout).to.not.contain("zfs ");
        });
    });
});
