import { ByteSize } from "#engine/step/fields.ts";
import { suggestHint } from "#errors/suggest.ts";
import {
  checkNames,
  insideOf,
  type Content,
  type Layout,
  type LayoutDisk,
  type LayoutPartition,
  type Path,
  type Refuse,
} from "./layout-schema.ts";

const MiB = 1024 ** 2;

/** Folders of the system and of the keys that let kcore in: a layout mounts nothing over them. */
const systemPlaces =
  "/ /bin /boot /boot/efi /efi /lib /lib64 /root /sbin /usr /var /var/lib /var/lib/kcore /nix /nix/store".split(" ");
/** Trees in which a layout mounts nothing: configuration with the keys of containers, the kernel's file systems, the state of runs. */
const systemTrees = /^\/(?:etc|dev|proc|run|sys|var\/lib\/kcore\/(?:aside|fresh|lock|owed|runs|status|trial))(?:\/|$)/;

const devicePath = /^\/dev(?!.*\/\.\.(?:\/|$))\/[!-~]+$/;

const keysOfType: Readonly<
  Record<Content["type"], { readonly needs: readonly string[]; readonly may: readonly string[] }>
> = {
  filesystem: { needs: ["format"], may: ["mountpoint", "mountOptions"] },
  lvm_pv: { needs: ["vg"], may: [] },
  zfs: { needs: ["pool"], may: [] },
  swap: { needs: [], may: [] },
  luks: { needs: [], may: ["allowDiscards", "content"] },
};

/** Refuses mistakes that the schema of a layout cannot find: contradictions, and names that the layout does not declare. */
export function checkLayout(layout: Layout, refuse: Refuse): void {
  checkNames("disk", layout.disks, ["disks"], refuse);
  const devices = new Map<string, string>();
  const places = new Map<string, string>();
  for (const [index, disk] of layout.disks.entries()) {
    const path = ["disks", index];
    checkDevice(disk, path, devices, refuse);
    checkPartitions(disk, [...path, "gpt", "partitions"], refuse);
    for (const [number, partition] of disk.gpt.partitions.entries())
      checkPartition(partition, [...path, "gpt", "partitions", number], { layout, places, refuse });
  }
  checkGroups(layout, refuse);
}

function checkDevice(
  { name, device, serial }: LayoutDisk,
  path: Path,
  seen: Map<string, string>,
  refuse: Refuse,
): void {
  const wanted = "device: /dev/disk/by-id/…, or serial: as `lsblk -o NAME,SERIAL` shows it";
  if ((device === undefined) === (serial === undefined)) {
    refuse(path, "a disk is named by exactly one of device and serial", wanted);
    return;
  }
  const [key, value] = device === undefined ? ["serial", serial ?? ""] : ["device", device];
  const place = [...path, key];
  if (key === "device" && !devicePath.test(value)) {
    const hint = value.startsWith("/") ? wanted : `a serial number has a key of its own: serial: ${value}`;
    refuse(place, `“${value}” is not the path of a disk`, hint);
  }
  const earlier = seen.get(`${key} ${value}`);
  if (earlier !== undefined) refuse(place, `${value} is the disk ${earlier} already`, "a disk stands here once");
  seen.set(`${key} ${value}`, name);
}

/** A size in bytes; undefined for `100%`, and for an invalid size. */
export function sizeInBytes(size: LayoutPartition["size"]): number | undefined {
  return size === "100%" ? undefined : ByteSize.safeParse(size).data;
}

function checkPartitions({ name, gpt: { partitions } }: LayoutDisk, path: Path, refuse: Refuse): void {
  if (partitions.length === 0) refuse(path, `the disk ${name} gets no partition`, "- { name: data, size: 100% }");
  checkNames("partition", partitions, path, refuse);
  for (const [index, { size }] of partitions.entries()) {
    const place = [...path, index, "size"];
    const bytes = sizeInBytes(size);
    if (size === "100%") {
      if (index < partitions.length - 1)
        refuse(place, "only the last partition of a disk may take 100%", "it is what the others leave");
    } else if (bytes === undefined)
      refuse(place, `“${size}” is no size`, "such as 512M or 10G, or 100% for what is left");
    else if (bytes < MiB || bytes % MiB !== 0) refuse(place, `“${size}” is not a number of whole MiB`, "such as 512M");
  }
}

interface LayoutContext {
  readonly layout: Layout;
  /** Names of partitions by their mount points. */
  readonly places: Map<string, string>;
  readonly refuse: Refuse;
}

function checkPartition(partition: LayoutPartition, path: Path, { layout, places, refuse }: LayoutContext): void {
  const { content } = partition;
  if (content === undefined) return;
  checkKeys(content, [...path, "content"], refuse);
  if (content.type === "luks" && content.content) checkKeys(content.content, [...path, "content", "content"], refuse);
  const { encrypted, inner } = insideOf(partition);
  const place = [...path, "content", ...(encrypted ? ["content"] : [])];
  if (inner?.type === "lvm_pv" && inner.vg !== undefined)
    checkKnown("volume group", inner.vg, [...place, "vg"], layout.lvmVolumeGroups, "lvmVolumeGroups", refuse);
  if (inner?.type === "zfs" && inner.pool !== undefined)
    checkKnown("pool", inner.pool, [...place, "pool"], layout.zfsPools, "zfsPools", refuse);
  const { mountpoint, mountOptions } = inner ?? {};
  if (mountpoint === undefined) {
    if (mountOptions !== undefined)
      refuse([...place, "mountOptions"], "mountOptions are of no use without a mountpoint", "mountpoint: /srv/data");
    return;
  }
  if (systemPlaces.includes(mountpoint) || systemTrees.test(mountpoint))
    refuse([...place, "mountpoint"], `${mountpoint} belongs to the system`, "/var/lib/kcore/volumes1, /srv, …");
  if (/[^!-~]|[\\#]/.test(mountpoint))
    refuse([...place, "mountpoint"], "a mountpoint must hold no blanks, “\\” or “#”");
  const earlier = places.get(mountpoint);
  if (earlier !== undefined)
    refuse([...place, "mountpoint"], `${mountpoint} is where ${earlier} is mounted already`, "another place");
  places.set(mountpoint, partition.name);
}

function checkKeys(content: Content | NonNullable<Content["content"]>, path: Path, refuse: Refuse): void {
  const { needs, may } = keysOfType[content.type];
  const { type, ...given } = content;
  for (const key of needs)
    if (!(key in given) || given[key as keyof typeof given] === undefined)
      refuse(path, `a ${type} says its ${key}`, hintOf(key));
  for (const [key, value] of Object.entries(given))
    if (value !== undefined && ![...needs, ...may].includes(key)) {
      const owner = Object.entries(keysOfType).find(([, keys]) => [...keys.needs, ...keys.may].includes(key))?.[0];
      refuse([...path, key], `“${key}” means nothing for a ${type}`, `it belongs to type: ${owner ?? ""}`);
    }
}

function hintOf(key: string): string {
  return { format: "format: ext4, xfs or vfat", vg: "vg: vg_kcore", pool: "pool: tank0" }[key] ?? key;
}

function checkKnown(
  what: string,
  name: string,
  path: Path,
  known: readonly { readonly name: string }[],
  list: string,
  refuse: Refuse,
): void {
  if (known.some((one) => one.name === name)) return;
  const names = known.map((one) => one.name);
  refuse(path, `there is no ${what} ${name} in this layout`, suggestHint(name, names, `${list}: [{ name: ${name} }]`));
}

/** A partition that is a member of a volume group or a pool. */
interface Member {
  readonly disk: string;
  readonly partition: string;
  readonly encrypted: boolean;
  readonly path: readonly (string | number)[];
}

/** The partitions that a layout makes for a volume group or a pool, in the order of the layout. */
export function groupMembers(layout: Layout, type: "lvm_pv" | "zfs", name: string): readonly Member[] {
  return layout.disks.flatMap(({ name: disk, gpt }, index) =>
    gpt.partitions.flatMap((partition, number): readonly Member[] => {
      const { encrypted, inner } = insideOf(partition);
      if (inner?.type !== type || (type === "zfs" ? inner.pool : inner.vg) !== name) return [];
      const path = ["disks", index, "gpt", "partitions", number];
      return [{ disk, partition: partition.name, encrypted, path }];
    }),
  );
}

/** The fewest members of each kind of pool (zpoolconcepts(7)), and the number that divides their count: mirrors are pairs. */
const poolMembers = { stripe: [1, 1], mirror: [2, 2], raidz1: [2, 1], raidz2: [3, 1], raidz3: [4, 1] } as const;

/** Each volume group and each pool needs members, with one name and one encryption on every disk, as their modules require. */
function checkGroups(layout: Layout, refuse: Refuse): void {
  for (const [list, type, what] of [
    ["lvmVolumeGroups", "lvm_pv", "volume group"],
    ["zfsPools", "zfs", "pool"],
  ] as const) {
    checkNames(what, layout[list], [list], refuse);
    for (const [index, { name }] of layout[list].entries()) {
      const members = groupMembers(layout, type, name);
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
    const count = groupMembers(layout, "zfs", name).length;
    const [least, multiple] = poolMembers[mode];
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
