import { expect } from "chai";
import { layoutParams } from "#engine/layout/layout-params.ts";
import { LayoutSchema } from "#engine/layout/layout-schema.ts";
import { registry } from "#engine/modules/registry.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import { expandSteps } from "#engine/states/expand-steps.ts";
import { statesOf } from "#engine/states/open-states.ts";
import { secret } from "#engine/step/secret.ts";
import { inProject } from "#support/in-project.ts";

const filesystem = (format: string, mountpoint?: string) => ({
  type: "filesystem",
  format,
  ...(mountpoint && { mountpoint }),
});
const disk = (name: string, partitions: readonly object[]) => ({ name, serial: name, gpt: { partitions } });
const layout = LayoutSchema.parse({
  disks: [
    disk("a", [
      { name: "deep", size: "1G", content: { ...filesystem("xfs", "/srv/data/deep"), mountOptions: ["noatime"] } },
      { name: "data", size: "1G", content: filesystem("ext4", "/srv/data") },
      { name: "boot", size: "512M", content: filesystem("vfat") },
      { name: "swap0", size: "1G", content: { type: "luks", allowDiscards: true, content: { type: "swap" } } },
      { name: "rest", size: "100%" },
    ]),
    disk("b", [{ name: "pv", size: "100%", content: { type: "luks", content: { type: "lvm_pv", vg: "vg_kcore" } } }]),
    disk("c", [{ name: "zfs", size: "100%", content: { type: "zfs", pool: "tank0" } }]),
    disk("d", [{ name: "zfs", size: "100%", content: { type: "zfs", pool: "tank0" } }]),
  ],
  lvmVolumeGroups: [{ name: "vg_kcore" }],
  zfsPools: [{ name: "tank0", mode: "mirror" }],
});
const pins = new Map(layout.disks.map(({ name }) => [name, { serial: `S-${name}` }]));
const params = layoutParams({ name: "all", node: "id1" }, layout, pins);

/** The steps of the shipped state with these parameters: title and module of each. */
const stepsOf = (values: Readonly<Record<string, unknown>>): Promise<readonly string[]> =>
  inProject({ "roster/r.yaml": "nodes:\n  n1: { address: h1 }\n" }, async (project) => {
    const { nodes } = loadRoster(project);
    const drafts = await expandSteps(statesOf({ project, shipped: shippedRoot() }), {
      apply: [
        {
          state: "kcore/disk-layout",
          given: new Map(Object.entries(values).map(([name, value]) => [name, { value }])),
        },
      ],
      node: [...nodes.values()][0] as NodeEntry,
      nodes,
      run: { id: "r1" },
      modules: (name) => registry.get(name)?.() ?? Promise.resolve(undefined),
      moduleNames: [...registry.keys()],
      readSecret: () => Promise.resolve(secret("")),
    });
    return drafts.flatMap((draft) => {
      if (draft.needs.facts) return [`${draft.title} waits for facts`];
      const rendered = draft.render({ steps: new Map() });
      return rendered.kind === "step" ? [`${draft.title} ${rendered.plan.module}`] : [];
    });
  });

describe("the parameters of state kcore/disk-layout", () => {
  it("expand to a step for each part of the layout, inner mounts behind outer ones", async () =>
    expect(await stepsOf(params)).to.deep.equal([
      ...["gdisk", "xfsprogs", "dosfstools", "lvm2", "cryptsetup-bin"].map(
        (name) => `tools[${name}] package.installed`,
      ),
      "zfs module waits for facts",
      "zfs tools package.installed",
      ...["a", "b", "c", "d"].map((name) => `partition[${name}] disk.partitioned`),
      "container[a/swap0] luks.opened",
      "container[b/pv] luks.opened",
      ...["a/deep", "a/data", "a/boot"].map((name) => `filesystem[${name}] filesystem.formatted`),
      "mount[/srv/data] mount.mounted",
      "mount[/srv/data/deep] mount.mounted",
      "swap[a/swap0] swap.enabled",
      "physical volume[b/pv] lvm.physical_volume",
      "volume group[vg_kcore] lvm.volume_group",
      "pool[tank0] zfs.pool",
      "folder of records[/etc/kcore] directory.managed",
      "folder of records[/etc/kcore/disk] directory.managed",
      "record file.managed",
    ]));

  it("have sizes in bytes, types by contents, groups and pools with their disks, and a record without device names", () => {
    expect(params["disks"]).to.deep.include({
      name: "a",
      disk: { serial: "S-a" },
      partitions: [
        { name: "deep", size: 2 ** 30, type: "linux" },
        { name: "data", size: 2 ** 30, type: "linux" },
        { name: "boot", size: 2 ** 29, type: "linux" },
        { name: "swap0", size: 2 ** 30, type: "luks" },
        { name: "rest", size: "100%", type: "linux" },
      ],
    });
    expect(params["volumeGroups"]).to.deep.equal([
      { name: "vg_kcore", disks: [{ serial: "S-b" }], partition: "pv", encrypted: true },
    ]);
    expect(params["pools"]).to.deep.equal([
      {
        name: "tank0",
        disks: [{ serial: "S-c" }, { serial: "S-d" }],
        partition: "zfs",
        encrypted: false,
        layout: "mirror",
        rootProperties: { compression: "lz4" },
      },
    ]);
    expect(params["record"])
      .to.match(/^# made by kcore/)
      .and.contain("serial: S-a")
      .and.not.contain("/dev/");
  });
});
