import { insideOf, type Layout } from "./layout-schema.ts";
import { checkNames, type Refuse } from "./refuse.ts";

/** A partition that is a member of a volume group or a pool. */
interface Member {
  readonly disk: string;
  readonly partition: string;
  readonly encrypted: boolean;
  readonly path: readonly (string | number)[];
}

/** The partitions that are made for a volume group, or a pool, in the order of the layout. */
export function membersOf(layout: Layout, type: "lvm_pv" | "zfs", name: string): readonly Member[] {
  return layout.disks.flatMap(({ name: disk, gpt }, index) =>
    gpt.partitions.flatMap((partition, number): readonly Member[] => {
      const { encrypted, inner } = insideOf(partition);
      if (inner?.type !== type || (type === "zfs" ? inner.pool : inner.vg) !== name) return [];
      const path = ["disks", index, "gpt", "partitions", number];
      return [{ disk, partition: partition.name, encrypted, path }];
    }),
  );
}

/** The fewest members of each kind of pool, and the number that divides their count (zpoolconcepts(7)). */
const fewest = { stripe: [1, 1], mirror: [2, 2], raidz1: [2, 1], raidz2: [3, 1], raidz3: [4, 1] } as const;

/** Each volume group and each pool has members, alike on every disk, as the modules that make them want it. */
export function checkGroups(layout: Layout, refuse: Refuse): void {
  for (const [list, type, what] of [
    ["lvmVolumeGroups", "lvm_pv", "volume group"],
    ["zfsPools", "zfs", "pool"],
  ] as const) {
    checkNames(what, layout[list], [list], refuse);
    for (const [index, { name }] of layout[list].entries()) {
      const members = membersOf(layout, type, name);
      const [first] = members;
      if (!first) {
        const hint = `content: { type: ${type}, ${type === "zfs" ? "pool" : "vg"}: ${name} }`;
        refuse([list, index], `no partition is for the ${what} ${name}`, hint);
        continue;
      }
      checkAlike(`${what} ${name}`, members, first, refuse);
    }
  }
  for (const [index, { name, mode }] of layout.zfsPools.entries()) {
    const count = membersOf(layout, "zfs", name).length;
    const [least, multiple] = fewest[mode];
    if (count > 0 && (count < least || count % multiple !== 0))
      refuse(
        ["zfsPools", index],
        `the pool ${name} cannot be a ${mode} of ${count} ${count === 1 ? "disk" : "disks"}`,
        multiple > 1 ? "mirrors are pairs" : `a ${mode} has at least ${least}`,
      );
  }
}

function checkAlike(what: string, members: readonly Member[], first: Member, refuse: Refuse): void {
  for (const [index, { disk, partition, encrypted, path }] of members.entries()) {
    if (members.findIndex((other) => other.disk === disk) < index)
      refuse(path, `the disk ${disk} is in the ${what} twice`, "one partition of each disk");
    else if (partition !== first.partition)
      refuse(
        [...path, "name"],
        `the partitions of the ${what} are called ${first.partition} and ${partition}`,
        "they have one name on every disk",
      );
    else if (encrypted !== first.encrypted)
      refuse(
        path,
        `the ${what} is encrypted on one disk and not on another`,
        "luks around all of them, or around none",
      );
  }
}
