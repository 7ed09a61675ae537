import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { openLab, type Lab, type LabNode } from "#lab/lab.ts";
import { openBastion, rosterOf, type Bastion, type Ended } from "#support/deploy.ts";
import { diskSum } from "#support/disk-sum.ts";
import { isLong } from "#support/long-lab.ts";

const link = (number: number): string => `/dev/disk/by-id/virtio-v1-disk${number}`;
const ext4 = (place: string): string => `{ type: filesystem, format: ext4, mountpoint: ${place} }`;

/** An ext4, a swap area and a LUKS container on one disk, named by a path; a volume group on another, by its serial number. */
const layout = `kind: DiskLayout
metadata: { name: data }
spec:
  nodeId: v1
  diskLayout:
    disks:
      - name: first
        device: /dev/vdb
        gpt:
          partitions:
            - { name: kcore0, size: 64M, content: ${ext4("/var/lib/kcore/volumes1")} }
            - { name: swap0, size: 16M, content: { type: swap } }
            - { name: secret, size: 100%, content: { type: luks, content: ${ext4("/srv/secret")} } }
      - { name: second, serial: v1-disk1, gpt: { partitions: [{ name: pv, size: 100%, content: { type: lvm_pv, vg: vg_kcore } }] } }
    lvmVolumeGroups: [{ name: vg_kcore }]
`;
const third = (size = "100%"): string => `kind: DiskLayout
metadata: { name: third }
spec:
  nodeId: v1
  diskLayout:
    disks: [{ name: third, device: ${link(2)}, gpt: { partitions: [{ name: a, size: ${size}, content: ${ext4("/srv/a")} }] } }]
`;

interface Told {
  readonly result: string;
  readonly phase: string;
  readonly disks: readonly { readonly name: string; readonly id: object; readonly verdict: string }[];
  readonly refusals: readonly { readonly code: string; readonly reason: string; readonly message: string }[];
}

describe("a DiskLayout on a machine of its own (F-18)", function () {
  this.timeout(1_800_000);
  let lab: Lab;
  let v1: LabNode;
  let bastion: Bastion;

  before(async function () {
    if (!isLong) return this.skip();
    lab = await openLab({ name: "vmlayout" });
    await lab.down();
    [v1] = (await lab.up([{ name: "v1", kind: "vm", disks: ["160M", "64M", "64M"] }])) as [LabNode];
    // The inventory and the run use sudo.
    bastion = await openBastion({ "roster/lab.yaml": await rosterOf(lab, { v1: "user: ops" }) });
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  const shell = async (command: string): Promise<string> => {
    const { code, stdout, stderr } = await v1.exec(command);
    if (code !== 0) throw new Error(`${command}: exit ${code}\n${stdout}${stderr}`);
    return stdout;
  };
  const run = async (verb: "apply" | "diff", text: string, ...more: readonly string[]): Promise<Ended> => {
    const file = join(bastion.project, "layout.yaml");
    await writeFile(file, text);
    return bastion.kcore([verb, "-f", file, ...more]);
  };
  const told = async (text: string, ...more: readonly string[]): Promise<Told> => {
    const ended = await run("diff", text, "-o", "json", ...more);
    return (JSON.parse(ended.stdout || `[{}] ${ended.stderr}`) as [Told])[0];
  };
  const sum = async (number: number): Promise<string> => {
    await shell("sync");
    return diskSum(v1, number);
  };

  it("is made of blank disks, each pinned to its serial number, and then found in order", async () => {
    const plan = await told(layout);
    expect([plan.result, plan.phase, plan.refusals], JSON.stringify(plan)).to.deep.equal(["created", "pending", []]);
    expect(plan.disks.map(({ id, verdict }) => [id, verdict])).to.deep.equal([
      [{ serial: "v1-disk0" }, "safe"],
      [{ serial: "v1-disk1" }, "safe"],
    ]);
    const made = await run("apply", layout);
    expect(made.code, made.stdout + made.stderr).to.equal(0);
    expect(made.stdout).to.contain("disklayout/data created");
    expect(await shell("findmnt -no FSTYPE /var/lib/kcore/volumes1; findmnt -no FSTYPE,SOURCE /srv/secret")).to.match(
      /^ext4\next4 +\/dev\/mapper\/luks-/,
    );
    expect(await shell("vgs --noheadings -o vg_name,pv_count; cat /proc/swaps")).to.match(/vg_kcore +1\n[^]*partition/);
    expect(await shell("cat /etc/kcore/disk/data.yaml"))
      .to.contain("serial: v1-disk0")
      .and.not.contain("/dev/vd");

    const again = await run("apply", layout);
    expect([again.code, again.stdout], again.stderr).to.deep.equal([0, "disklayout/data unchanged\n"]);
    const diff = await run("diff", layout);
    expect(diff.code, diff.stdout).to.equal(0);
    expect(diff.stdout).to.contain("SAFE: kcore made it").and.contain("disklayout/data unchanged");
  });

  it("refuses one that holds something until just that is granted", async () => {
    await shell(`mkfs.ext4 -qF ${link(2)}`);
    const before = await sum(2);
    const refused = await run("apply", third(), "-o", "json");
    expect(refused.code).to.equal(1);
    const [line] = JSON.parse(refused.stdout) as [Told];
    expect([line.phase, line.refusals[0]?.code, line.refusals[0]?.reason]).to.deep.equal([
      "refused",
      "DISK_HAS_DATA",
      "target_device_holds_data",
    ]);
    expect(await sum(2)).to.equal(before);
    const [, grant = ""] = /--grant (v1-disk2:[0-9a-f]{16})/.exec(line.refusals[0]?.message ?? "") ?? [];
    const made = await run("apply", third("32M"), "--grant", grant, "-o", "json");
    expect([made.code, (JSON.parse(made.stdout) as [Told])[0].phase], made.stderr).to.deep.equal([0, "applied"]);
  });

  it("refuses a disk of kcore's own with partitions that it does not name, one in a volume group, and a disk that is not there", async () => {
    const other = await told(third().replace("{ name: a,", "{ name: b,"));
    expect(other.refusals.map(({ code }) => code)).to.deep.equal(["DISK_LAYOUT_KCORE_VOLUME"]);
    await shell("lvcreate -qy -n lv -L 8M vg_kcore");
    const id = "nodeId: v1";
    const group = layout.replace("name: pv,", "name: other,").replace(id, `${id} # as another layout would have it`);
    expect((await told(group)).refusals.map(({ code }) => code)).to.deep.equal(["DISK_LAYOUT_KCORE_VOLUME"]);
    const none = await told(third().replace("disk2", "disk7"));
    expect(none.refusals.map(({ code }) => code)).to.deep.equal(["DISK_NOT_FOUND"]);
  });

  it("judges nothing where blkid fails, and changes nothing where the installer alone may", async () => {
    await shell("mkdir -p /etc/kcore && echo installer-only >/etc/kcore/disk-management-mode");
    expect((await told(third("32M"))).refusals.map(({ code }) => code)).to.deep.equal(["DISK_LAYOUT_INSTALLER"]);
    await shell("echo controller-managed >/etc/kcore/disk-management-mode");
    expect((await told(third("32M"))).result).to.equal("unchanged");
    await shell("chmod 0 $(command -v blkid)");
    const ended = await run("diff", third("32M"));
    expect([ended.code, ended.stdout], ended.stderr).to.deep.equal([1, ""]);
    expect(ended.stderr).to.contain("DISK_LAYOUT_PROBE_FAILED");
  });
});
