import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { diskFunctions } from "#engine/step/fragments/disk-functions.ts";
import { findDisk, findForeignPartition } from "#engine/step/fragments/disk.ts";
import { stepOfFormat } from "#engine/step/fragments/format.ts";
import { rawSh, sh } from "#engine/step/sh.ts";
import { shellsOf } from "#support/shells.ts";
import { runStepOn, type StepRun, type StepRunOptions } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

/** Runs a format step on partition sdx1 with these contents and users; a stand-in formatter only makes a note. */
function format(
  { contents = "", users = "" }: { readonly contents?: string; readonly users?: string },
  options: StepRunOptions = {},
): Promise<StepRun> {
  const step = stepOfFormat({
    find: sh`${diskFunctions}
disk=/dev/sdx disk_name=sdx device=/dev/sdx1 name=sdx1
disk_ids() { echo "sdx serial S1"; echo "sdx wwn 5000c500"; }
users_of() { printf %s ${users}; }
refused_open() { :; }
contents_of() { printf %s ${contents}; }`,
    guid: "guid",
    type: "ext4",
    uuid: "uuid",
    wanted: "ext4",
    grant: "S1",
    make: sh`note "formatted"`,
    tool: { command: "true", package: "coreutils" },
  });
  const bin = { blkid: "exit 2", wipefs: "exit 0" };
  return runStepOn("dash", { want: { type: "ext4" }, ...step }, { bin, ...options });
}

const contents = "/dev/sdx1 holds xfs at byte 0x0";
/** The fingerprint in refusals and grants, here of a device without bytes; it does not depend on the disk's name. */
const fingerprint = createHash("sha256").update("device holds xfs at byte 0x0\n\n").digest("hex").slice(0, 16);

describe("findDisk", () => {
  const at = folderOfEachTest("disks");
  /** Runs findDisk for a serial on a machine whose disks have these serials and WWNs. */
  async function find(
    serials: Readonly<Record<string, string | undefined>>,
    serial: string,
    wwids: Readonly<Record<string, string>> = {},
    shell = "dash",
  ): Promise<StepRun> {
    for (const [name, own] of Object.entries(serials)) {
      await mkdir(at(name));
      await writeFile(at(name, "size"), "8\n");
      if (own !== undefined) await writeFile(at(name, "serial"), `${own}\n`);
    }
    for (const [name, wwid] of Object.entries(wwids)) {
      await mkdir(at(name, "device"));
      await writeFile(at(name, "device/wwid"), `${wwid}\n`);
    }
    const text = findDisk({ serial }).toString().replaceAll("/sys/block/", `${at()}/`);
    return runStepOn(shell, { want: { found: "" }, probe: rawSh(text) }, { bin: { lsblk: "exit 1" } });
  }

  for (const shell of shellsOf(import.meta.filename))
    it(`finds the disk with the serial, not a disk without one nor a mapped device, on ${shell}`, async () => {
      const disks = { "kcore-a": "S1", "kcore-b": undefined, zd0: "S1", "dm-0": "S1" };
      const { problem } = await find(disks, "S1", {}, shell);
      expect(problem?.message).to.equal("/dev/kcore-a, the disk with serial S1, is no block device");
    });

  it("does not take another disk's WWN for a serial", async () => {
    const { problem } = await find({ "kcore-a": "S1", "kcore-b": undefined }, "naa.5000c5", {
      "kcore-a": "naa.5000c5",
    });
    expect(problem?.message).to.equal("no disk with serial naa.5000c5");
  });

  it("settles udev before the exclusive open of a disk", async () => {
    const log = at("log");
    const logging = `echo "\${0##*/} $*" >>${log}`;
    const probe = rawSh(`${diskFunctions.toString()}\nfact users "$(refused_disk /dev/sdx)"`);
    const { have } = await runStepOn(
      "dash",
      { want: { users: "x" }, probe },
      { bin: { wipefs: logging, udevadm: logging } },
    );
    expect(have).to.deep.equal({ users: "" });
    expect(await readFile(log, "utf8")).to.equal("wipefs -a -n /dev/sdx\nudevadm settle --timeout=10\n");
  });

  it("refuses a serial that no disk or several disks have", async () => {
    const [missing, ambiguous] = [await find({ "kcore-a": "S1" }, "S2"), await find({ a: "S1", b: "S1" }, "S1")];
    expect([missing.problem?.code, ambiguous.problem?.code]).to.deep.equal(["DISK_NOT_FOUND", "DISK_AMBIGUOUS"]);
    expect(missing.problem?.detail).to.contain("serial S1");
  });

  it("refuses a partition that no disk has", async () => {
    const probe = findForeignPartition("e55e0dd0-6a11-5fd2-8a8b-5e7b6a7e3d5c");
    const bin = { partx: "exit 1", lsblk: "exit 1" };
    const { problem } = await runStepOn("dash", { want: { found: "" }, probe }, { bin });
    expect(problem?.code).to.equal("PARTITION_NOT_FOUND");
    expect(problem?.message).to.contain("no disk has a partition");
  });
});

describe("a device to format", () => {
  it("is formatted when it is blank", async () => expect((await format({})).notes).to.include("formatted"));

  it("is refused when it is in use, though granted", async () => {
    const run = await format({ contents, users: "/dev/sdx1 is swap" }, { granted: [`S1:${fingerprint}`] });
    expect([run.problem?.code, run.notes]).to.deep.equal(["DISK_IN_USE", []]);
  });

  it("is refused with contents, and the refusal names the grant", async () => {
    const run = await format({ contents });
    expect([run.problem?.code, run.notes]).to.deep.equal(["FILESYSTEM_DIFFERS", []]);
    expect(run.problem?.message).to.contain(`--grant S1:${fingerprint}`);
  });

  it("is wiped when exactly these contents are granted, by any name of the disk", async () => {
    for (const name of ["S1", "5000c500"]) {
      const { notes } = await format({ contents }, { granted: [`${name}:${fingerprint}`] });
      expect(notes).to.deep.equal(["wiping /dev/sdx1, as granted", "formatted"]);
    }
  });

  it("is refused when other contents or another disk are granted", async () => {
    for (const grant of [`S1:${"0".repeat(16)}`, `S2:${fingerprint}`, "S1"]) {
      const run = await format({ contents }, { granted: [grant] });
      expect([run.problem?.code, run.notes], grant).to.deep.equal(["FILESYSTEM_DIFFERS", []]);
    }
  });

  it("is refused when its table could not be saved", async () => {
    const run = await format({ contents }, { env: { K_UNSAVED: `S1:${fingerprint}\nthe disk is full\n` } });
    expect(run.problem?.code).to.equal("DISK_NOT_SAVED");
    expect(run.problem?.message).to.contain("the disk is full");
  });
});

describe("users_of", () => {
  const at = folderOfEachTest("users");

  it("lists mounts by number and by name, swap, and holders", async () => {
    for (const name of ["dev", "ro"]) {
      await mkdir(at("sdx1/holders/dm-0"), { recursive: true });
      await writeFile(at("sdx1", name), name === "dev" ? "8:1\n" : "0\n");
    }
    const mounts = ["36 35 8:1 / /data rw - ext4 /dev/root rw", "37 35 0:40 / /pool rw - btrfs /dev/sdx1 rw"];
    await writeFile(at("mountinfo"), `${mounts.join("\n")}\n36 35 8:2 / /other rw - ext4 /dev/sdx2 rw\n`);
    await writeFile(at("swaps"), "Filename Type\n/dev/sdx1 partition 1 0 -1\n");
    const text = diskFunctions
      .toString()
      .replaceAll("/sys/class/block/", `${at()}/`)
      .replaceAll("/proc/self/mountinfo", `${at()}/mountinfo`)
      .replaceAll("/proc/swaps", `${at()}/swaps`);
    const probe = rawSh(`${text}\nfact users "$(users_of sdx1)"`);
    const { have } = await runStepOn("dash", { want: { users: "" }, probe });
    expect(have["users"]?.split("\n")).to.deep.equal([
      "/dev/sdx1 is mounted at /data",
      "/dev/sdx1 is mounted at /pool",
      "/dev/sdx1 is swap",
      "/dev/sdx1 is held by dm-0 ",
    ]);
  });
});
