import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import { widthOf } from "#base/text.ts";
import { drawLayoutPlan, shortSize, type Canvas } from "#cli/apply/draw-layout.ts";
import { planLayout, type DiskPlan } from "#engine/layout/plan-layout.ts";
import type { Layout } from "#engine/layout/layout-schema.ts";
import { readManifests } from "#manifests/read-manifests.ts";
import { inventoryOf, type DescribedDevice } from "#support/disk-inventory.ts";

const guide = readFileSync(join(import.meta.dirname, "../../../../docs/disks.md"), "utf8");
const [, text = ""] = /```yaml file=disks\.yaml\n([\s\S]*?)```/.exec(guide) ?? [];
const [manifest] = readManifests("disks.yaml", text);
const layout = (manifest as unknown as { layout: Layout }).layout;
const node = { name: "n1", id: "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11", disks: [] };

const disks: readonly DescribedDevice[] = [
  {
    name: "nvme1n1",
    size: 953_869,
    serial: "S3Z8NB0K",
    model: "Fast Disk 1TB",
    pttype: "gpt",
    links: ["/dev/disk/by-id/nvme-Fast_Disk_S3Z8NB0K"],
  },
  { name: "nvme1n1p1", size: 512, type: "part", disk: "nvme1n1", start: 1, fstype: "vfat", partlabel: "EFI" },
  { name: "nvme1n1p2", size: 400_000, type: "part", disk: "nvme1n1", start: 513, fstype: "ntfs", label: "Data" },
  { name: "sdb", size: 3_815_447, serial: "WD-42", model: "Slow Disk" },
];
const plan = planLayout(node, layout, inventoryOf(disks));
const draw = (canvas: Partial<Canvas> = {}): string => drawLayoutPlan(plan, { columns: 80, ...canvas });

describe("the drawing of a disk layout", () => {
  it("is as wide as the terminal, and equals the drawing in docs/disks.md", () => {
    expect(guide).to.contain(`${draw()}\n`);
    for (const columns of [60, 80, 100, 300])
      for (const line of draw({ columns }).split("\n")) expect(line.length).to.be.at.most(Math.min(columns, 120));
  });

  it("has boxes in proportion to sizes, but none narrower than its text", () => {
    const widths = (title: string): readonly number[] =>
      (
        draw({ columns: 120 })
          .split("\n")
          .find((line) => line.startsWith(`  ${title}`)) ?? ""
      )
        .split("│")
        .slice(1, -1)
        .map((cell) => cell.length);
    // 512M, 390.6G and 540.4G: the smallest has the width of its text, the others share the rest in proportion.
    expect(widths("before")).to.deep.equal([10, 41, 55]);
    expect(widths("after")).to.deep.equal([11, 63, 32]);
  });

  it("is ASCII for a terminal without Unicode", () => {
    const ascii = draw({ ascii: true });
    expect(ascii).to.match(/^[ -~\n]*$/);
    expect(ascii.split("\n").slice(1, 5)).to.deep.equal([
      "          +----------+------------------------+--------------------------------+",
      "  before  | EFI 512M | nvme1n1p2 390.6G       | 540.4G                         |",
      '          | vfat     | ntfs "Data"            | free                           |',
      "          +----------+------------------------+--------------------------------+",
    ]);
  });

  it("is a list if boxes do not fit", () => {
    expect(draw({ columns: 44 }).split("\n").slice(0, 10)).to.deep.equal([
      "fast of n1: Fast Disk 1TB, serial S3Z8NB0K,",
      "  931.5G, /dev/nvme1n1 now",
      "  before  EFI 512M vfat",
      "          nvme1n1p2 390.6G ntfs “Data”",
      "          540.4G free",
      "  after   swap0 16G swap",
      "          kcore0 600G ext4 /var/lib/kcore/v…",
      "          home 315.5G luks xfs /srv/home",
      "  HOLDS DATA: it goes only as granted",
      "    (--grant)",
    ]);
    const many = Array.from({ length: 12 }, (_, index) => ({
      name: `p${index}`,
      size: 2 ** 30,
      holds: "",
      fate: "made" as const,
    }));
    const [one] = plan.disks as [DiskPlan];
    const crowded = drawLayoutPlan({ ...plan, disks: [{ ...one, after: many }] }, { columns: 80 });
    expect(crowded).to.contain("  after   p0 1G\n          p1 1G\n");
  });

  it("shows unchanged partitions once, with their users and the refusal", () => {
    const [one] = plan.disks as [DiskPlan];
    const kept = { name: "kcore0", size: 2 ** 30, holds: "ext4 /srv", fate: "kept" as const };
    const ours = { ...one, before: [kept], after: [kept], holders: ["/dev/sdb1 at /srv"], verdict: "refused" as const };
    const refusals = [{ code: "DISK_IN_USE", message: "m", reason: "target_device_in_use", disk: "fast" }] as const;
    expect(
      drawLayoutPlan({ node: "n1", disks: [ours], refusals }, { columns: 70, ascii: true }).split("\n"),
    ).to.deep.equal([
      "fast of n1: Fast Disk 1TB, serial S3Z8NB0K, 931.5G, /dev/nvme1n1 now",
      "          +----------------------------------------------------------+",
      "  stays   | kcore0 1G                                                |",
      "          | ext4 /srv                                                |",
      "          +----------------------------------------------------------+",
      "  in use: /dev/sdb1 at /srv",
      "  REFUSED (DISK_IN_USE, target_device_in_use)",
    ]);
  });

  it("keeps its borders aligned with wide characters", () => {
    const [one] = plan.disks as [DiskPlan];
    const after = [
      { name: "データ", size: 2 ** 39, holds: "漢字", fate: "kept" as const },
      { size: 2 ** 38, holds: "", fate: "free" as const },
    ];
    const lines = drawLayoutPlan({ ...plan, disks: [{ ...one, before: after, after }] }, { columns: 70 }).split("\n");
    expect([...new Set(lines.slice(1, 5).map(widthOf))]).to.deep.equal([70]);
  });

  it("contains no control characters of a node's names", () => {
    const [one] = plan.disks as [DiskPlan];
    const hostile = { ...one, model: "\u001b[2J", before: [{ size: 1, holds: "\u009b31m\n", fate: "lost" as const }] };
    expect(drawLayoutPlan({ ...plan, disks: [hostile] }, { columns: 80 }).replaceAll("\n", "")).not.to.match(/\p{Cc}/u);
  });

  it("has the same text with colours", () => {
    const painted = draw({ color: true });
    expect(painted).to.contain("\u001b[32m");
    expect(stripVTControlCharacters(painted)).to.equal(draw());
  });

  it("shows sizes in the largest unit of at least 1", () =>
    expect([1, 1023, 1024, 1536, 1_048_576].map((MiB) => shortSize(MiB * 1024 ** 2))).to.deep.equal(
      "1M 1023M 1G 1.5G 1T".split(" "),
    ));
});
