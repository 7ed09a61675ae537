import { expect } from "chai";
import { openLab, type Lab, type LabNode } from "#lab/lab.ts";
import { openBastion, labRoster, type Bastion } from "#support/deploy.ts";
import { SharedLine } from "#support/shared-line.ts";

const serial = (number: number): string => `v1-disk${number}`;
const link = (number: number): string => `/dev/disk/by-id/virtio-${serial(number)}`;

/** Time limit for an emulated processor on a busy machine. */
const patient = { timeout: 600_000 };

const state = `description: Wipes
params:
  disk: { type: string, required: true, description: Its serial. }
steps:
  - id: table
    disk.partitioned: { disk: { serial: "{{params.disk}}" }, partitions: [{ name: first, size: 32M }, { name: second }] }
  - id: filesystem
    filesystem.formatted: { disk: { serial: "{{params.disk}}" }, partition: second }
`;

const form = `description: Formats
steps:
  - id: filesystem
    filesystem.formatted: { vg: vg_old, lv: data, fstype: ext4 }
`;

/** Commands that show the contents of a disk. */
const shows = {
  lvm: "vgs --noheadings -o vg_name,vg_uuid,pv_count,lv_count vg_old; lvs --noheadings -o lv_name,lv_size vg_old",
  luks: `cryptsetup luksDump ${link(1)}-part1`,
  tables: [0, 1].map((number) => `sfdisk -d ${link(number)}`).join("; "),
};

/** Cases without LVM and LUKS are in test/integration/cli/restore-table.test.ts. */
describe("disks that were wiped by a grant and restored (F-18, ADR 0012)", function () {
  this.timeout(1_200_000);
  let lab: Lab;
  let v1: LabNode;
  let line: SharedLine;
  let bastion: Bastion;
  let original: Readonly<Record<keyof typeof shows, string>>;

  before(async () => {
    lab = await openLab({ name: "vmtables" });
    await lab.down();
    [v1] = (await lab.up([{ name: "v1", kind: "vm", disks: ["300M", "200M"] }])) as [LabNode];
    line = new SharedLine(v1);
    bastion = await openBastion({
      "roster/lab.yaml": await labRoster(lab),
      "states/wipe.yaml": state,
      "states/form.yaml": form,
    });
    shell(`sgdisk -n1:0:+200M -t1:8e00 -c1:old -n2:0:0 ${link(0)} && udevadm settle &&
vgcreate -qy vg_old ${link(0)}-part1 && lvcreate -qy -n data -L 64M vg_old && mkfs.ext4 -q /dev/vg_old/data &&
mount /dev/vg_old/data /mnt && echo kept >/mnt/file && umount /mnt && udevadm settle && vgchange -q --setautoactivation n vg_old && vgchange -qan vg_old
sgdisk -n1:0:0 -t1:8309 ${link(1)} && udevadm settle &&
echo secret | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 ${link(1)}-part1 - &&
echo secret | cryptsetup open --key-file - ${link(1)}-part1 old && mkfs.ext4 -q /dev/mapper/old && cryptsetup close old`);
    original = look();
  });
  after(async () => {
    line.close();
    await bastion.remove();
    await lab.down();
  });
  const shell = (command: string): string => line.shell(command);
  const look = (): typeof original =>
    Object.fromEntries(Object.entries(shows).map(([name, command]) => [name, shell(command)])) as typeof original;
  const wipe = (number: number, ...more: readonly string[]) =>
    bastion.kcore(["state", "apply", "wipe", "--on", "v1", "--set", `disk=${serial(number)}`, ...more], patient);
  const restore = (number: number, ...more: readonly string[]) =>
    bastion.kcore(["disk", "restore-table", "v1", serial(number), ...more], patient);
  /** Runs a refused command, or starts from the grant of an earlier refusal, then repeats it with each grant that a refusal names. */
  const granted = async (run: (...grants: string[]) => ReturnType<typeof wipe>, refused = ""): Promise<string> => {
    const [, first] = named.exec(refused) ?? [];
    const grants: string[] = first === undefined ? [] : ["--grant", first];
    for (;;) {
      const { code, stdout, stderr } = await run(...grants);
      if (code === 0) return stdout;
      const [, grant] = named.exec(stdout + stderr) ?? [];
      if (grant === undefined || grants.includes(grant)) throw new Error(`exit ${code}\n${stdout}${stderr}`);
      grants.push("--grant", grant);
    }
  };

  const named = /--grant (\S+:[0-9a-f]{16})/;
  it("are saved on the bastion before the wipe", async () => {
    for (const number of [0, 1]) {
      const said = await granted((...grants) => wipe(number, ...grants));
      expect(said).to.contain(`saved the table of ${serial(number)} before it may be wiped`);
    }
    expect(shell(`sfdisk -d ${link(0)}; vgs; blkid -p ${link(1)}-part1`)).to.not.match(/vg_old|crypto_LUKS/);
    const listed = await bastion.does("disk", "restore-table", "v1");
    expect(listed).to.match(/^DISK +SAVE +AGE +MADE +RUN +CONTENTS$/m);
    expect(listed).to.match(/v1-disk0 +[0-9a-f]{12} +\w+ +before a wipe +\S+ +gpt, LVM2_member; 300 MiB/);
    expect(listed).to.match(/v1-disk1 .*gpt, crypto_LUKS; 200 MiB/);
    const json = JSON.parse(await bastion.does("disk", "restore-table", "v1", "--output", "json")) as object[];
    expect(json[0]).to.include({ disk: serial(0), size: 300 * 1024 ** 2 });
    expect(json[0]).to.have.nested.property("contents.vgcfgbackup vg_old").that.contains("vg_old {");
  });

  it("are restored with a grant for the present contents", async () => {
    const refused = await restore(0);
    expect(refused.stdout).to.contain("DISK_HAS_DATA");
    await granted((...grants) => restore(0, ...grants), refused.stdout);
    await granted((...grants) => restore(1, ...grants));
    const again = await restore(0, "--output", "json");
    expect(again.code, again.stdout).to.equal(0);
    expect(again.stdout).to.contain('"outcome":"ok"').and.not.contain('"outcome":"changed"');
    expect(look()).to.deep.equal(original);
    for (const number of [0, 1]) expect(shell(`sgdisk -v ${link(number)}`)).to.contain("No problems found");
    shell(`udevadm settle; echo secret | cryptsetup open --key-file - ${link(1)}-part1 old && cryptsetup close old`);
    shell("vgchange -qay vg_old && udevadm settle && e2fsck -fn /dev/vg_old/data && vgchange -qan vg_old");
  });

  it("are refused while in use whatever is granted, and stay unchanged", async () => {
    shell("vgchange -qay vg_old; mount -r /dev/vg_old/data /mnt");
    const listed = await bastion.does("disk", "restore-table", "v1", serial(0), "--list");
    const [, save = ""] = /([0-9a-f]{12}) .*before a restore/.exec(listed) ?? [];
    const { code, stdout } = await restore(0, "--save", save, "--grant", `${serial(0)}:${"0".repeat(16)}`);
    expect([code, stdout.includes("DISK_IN_USE")], stdout).to.deep.equal([1, true]);
    expect(look()).to.deep.equal(original);
    shell("umount /mnt; vgchange -qan vg_old");
  });

  it("a logical volume is restored by its name", async () => {
    shell("vgchange -qay vg_old");
    const uuid = (): string => shell("blkid -p -o value -s UUID /dev/vg_old/data");
    const first = uuid();
    const format = (...grants: readonly string[]) =>
      bastion.kcore(["state", "apply", "form", "--on", "v1", ...grants], patient);
    await granted(format);
    expect(uuid()).to.not.equal(first);
    const volume = (...grants: readonly string[]) =>
      bastion.kcore(["disk", "restore-table", "v1", "vg_old/data", ...grants], patient);
    await granted(volume);
    expect(uuid()).to.equal(first);
  });
});
