import { expect } from "chai";
import { readManifests } from "#manifests/read-manifests.ts";
import { casesOf } from "#support/cases/read.ts";
import { problemsIn } from "#support/problems.ts";

const head = "kind: DiskLayout\nmetadata: { name: data }\nspec:\n  nodeId: n1\n";
/** One disk; its partitions begin in line 11. */
const disk = `  diskLayout:
    disks:
      - name: data1
        device: /dev/vdb
        gpt:
          partitions:
`;
const part = (text: string): string => `            - ${text}\n`;
const whole = `${head}${disk}${part("{ name: kcore0, size: 100%, content: { type: filesystem, format: ext4, mountpoint: /srv } }")}`;
const vg = "    lvmVolumeGroups: [{ name: vg_kcore }]\n";
const pv = part("{ name: pv, size: 100%, content: { type: lvm_pv, vg: vg_kcore } }");
const second = (text: string): string => `      - { name: data2, device: /dev/vdc, gpt: { partitions: [${text}] } }\n`;

/** Faulty manifests with every problem that kcore reports: `LINE:COLUMN message [CODE] | hint`. */
const wrong: Readonly<Record<string, readonly [text: string, ...problems: readonly string[]]>> = {
  "no layout": [
    head,
    "4:3 a layout is told by exactly one of diskLayout, layoutNix, layoutNixFile, not by none [DISK_LAYOUT_INVALID] | diskLayout: { disks: […] }",
  ],
  "two layouts": [
    `${whole}  layoutNix: "{ }"\n`,
    "12:14 a layout is told by exactly one of diskLayout, layoutNix, layoutNixFile, not by diskLayout and layoutNix [DISK_LAYOUT_INVALID] | keep one of them",
  ],
  "no disk": [
    `${head}  diskLayout: { disks: [] }\n`,
    "5:24 the layout has no disk [DISK_LAYOUT_NO_DISKS] | disks: [{ name: data1, device: /dev/disk/by-id/…, gpt: { partitions: […] } }]",
  ],
  "two disks of one name": [
    `${whole}${second("{ name: a, size: 100% }").replace("data2", "data1")}`,
    "12:17 the disk data1 is here twice [DISK_LAYOUT_INVALID] | give one of them another name",
  ],
  "one disk under two names": [
    `${whole}${second("{ name: a, size: 100% }").replace("vdc", "vdb")}`,
    "12:32 /dev/vdb is the disk data1 already [DISK_LAYOUT_INVALID] | a disk stands here once",
  ],
  "a disk without partitions": [
    `${head}${disk.trimEnd()} []\n`,
    "10:23 the disk data1 gets no partition [DISK_LAYOUT_INVALID] | - { name: data, size: 100% }",
  ],
  "two partitions of one name": [
    `${head}${disk}${part("{ name: a, size: 1G }")}${part("{ name: a, size: 1G }")}`,
    "12:23 the partition a is here twice [DISK_LAYOUT_INVALID] | give one of them another name",
  ],
  "100% before the last one": [
    `${head}${disk}${part("{ name: a, size: 100% }")}${part("{ name: b, size: 1G }")}`,
    "11:32 only the last partition of a disk may take 100% [DISK_LAYOUT_INVALID] | it is what the others leave",
  ],
  "one mountpoint twice": [
    `${whole}${second("{ name: b, size: 100%, content: { type: filesystem, format: xfs, mountpoint: /srv } }")}`,
    "12:139 /srv is where kcore0 is mounted already [DISK_LAYOUT_INVALID] | another place",
  ],
  "a volume group that is not there": [
    `${head}${disk}${pv.replace("vg_kcore", "vg_kcor")}${vg}`,
    "11:68 there is no volume group vg_kcor in this layout [DISK_LAYOUT_INVALID] | did you mean “vg_kcore”?",
    "12:23 no partition is for the volume group vg_kcore [DISK_LAYOUT_INVALID] | content: { type: lvm_pv, vg: vg_kcore }",
  ],
  "a volume group of partitions with different names": [
    `${head}${disk}${pv}${second("{ name: lvm, size: 100%, content: { type: lvm_pv, vg: vg_kcore } }")}${vg}`,
    "12:70 the partitions of the volume group vg_kcore are called pv and lvm [DISK_LAYOUT_INVALID] | they have one name on every disk",
  ],
  "a volume group that is encrypted in part": [
    `${head}${disk}${pv}${second("{ name: pv, size: 100%, content: { type: luks, content: { type: lvm_pv, vg: vg_kcore } } }")}${vg}`,
    "12:62 the volume group vg_kcore is encrypted on one disk and not on another [DISK_LAYOUT_INVALID] | luks around all of them, or around none",
  ],
  "a mirror of one disk": [
    `${head}${disk}${part("{ name: zfs, size: 100%, content: { type: zfs, pool: tank0 } }")}    zfsPools: [{ name: tank0, mode: mirror }]\n`,
    "12:16 the pool tank0 cannot be a mirror of 1 disk [DISK_LAYOUT_INVALID] | mirrors are pairs",
  ],
};

const problemsOf = (text: string): string[] =>
  problemsIn(() => readManifests("d.yaml", text)).map((line) =>
    line.replace(/^d\.yaml:(\d+:\d+)\+\d+ /, (_, place: string) => `${place} `),
  );

const replaced =
  casesOf<Record<string, { replace: readonly [string, string]; told: string | readonly string[] }>>(
    "disk-layout-refused.yaml",
  );

describe("the manifest of a disk layout", () => {
  it("is read in camelCase and snake_case", () => {
    const [camel] = readManifests("d.yaml", `${head}${disk}${pv}${vg}`);
    const snake = `${head}${disk}${pv}${vg}`
      .replace("nodeId", "node_id")
      .replace("diskLayout", "disk_layout")
      .replace("lvmVolumeGroups", "lvm_volume_groups");
    const [other] = readManifests("d.yaml", snake.replace("DiskLayout", "disk-layout"));
    expect(camel).to.have.nested.property("layout.lvmVolumeGroups[0].name", "vg_kcore");
    expect(other).to.have.deep.property("layout", (camel as { layout: unknown }).layout);
  });

  for (const [what, [text, ...problems]] of Object.entries(wrong))
    it(`is refused, with line and column: ${what}`, () => expect(problemsOf(text)).to.deep.equal(problems));

  for (const [what, { replace, told: problems }] of Object.entries(replaced))
    it(`is refused, with line and column: ${what}`, () =>
      expect(problemsOf(whole.replace(...replace))).to.deep.equal([problems].flat()));

  it("is refused with a mountpoint that would hide the system's or kcore's files", () => {
    for (const place of ["/root", "/lib", "/etc/kcore/luks", "/run/x", "/var/lib/kcore/runs", "/var/lib/kcore/fresh/x"])
      expect(problemsOf(whole.replace("/srv", place)), place).to.deep.equal([
        `11:98 ${place} belongs to the system [DISK_LAYOUT_INVALID] | /var/lib/kcore/volumes1, /srv, …`,
      ]);
    for (const place of "/etcetera /root2 /home /usr/local /var/lib/kcore/volumes1 /var/lib/kcore/runs2".split(" "))
      expect(() => readManifests("d.yaml", whole.replace("/srv", place)), place).not.to.throw();
  });

  it("is refused with all its problems at once", () => {
    const text = whole.replace("/dev/vdb", "vdb").replace("100%", "a lot").replace("/srv", "/etc");
    expect(problemsOf(text)).to.have.length(3);
  });
});
