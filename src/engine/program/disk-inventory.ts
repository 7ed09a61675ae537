import { shippedText } from "./texts.ts";

export interface BlockDevice {
  readonly name: string;
  readonly path: string;
  /** As lsblk names it: `disk`, `part`, `loop`, `lvm`, `crypt`, `raid1`. */
  readonly type: string;
  /** Bytes. */
  readonly size: number;
  /** The byte of the disk at which a partition begins; 0 for other devices. */
  readonly start: number;
  /** The disk of a partition; else empty. */
  readonly disk: string;
  readonly serial: string;
  readonly wwn: string;
  readonly model: string;
  readonly fstype: string;
  readonly label: string;
  readonly pttype: string;
  readonly ptuuid: string;
  readonly partuuid: string;
  readonly partlabel: string;
  /** Mount points of the device; `[SWAP]` for swap. */
  readonly mounts: readonly string[];
  /** Names of the devices that use this one. */
  readonly holders: readonly string[];
  /** Paths of links below /dev to the device. */
  readonly links: readonly string[];
}

export interface DiskInventory {
  readonly devices: readonly BlockDevice[];
  /** The words of /etc/kcore/disk-management-mode; undefined: there is no such file. */
  readonly mode?: string;
}

/** The sh program that lists a node's block devices for {@link readDiskInventory}. */
export function diskInventoryText(): string {
  return `LC_ALL=C PATH=$PATH:/usr/sbin:/sbin\nexport LC_ALL PATH\n${shippedText("disks")}\ndisk_inventory\n`;
}

/** Reads the output of {@link diskInventoryText}; undefined if the output breaks off, since a device may be missing then. */
export function readDiskInventory(text: string): DiskInventory | undefined {
  const lines = text.split("\n");
  const links = lines.filter((line) => line.startsWith("link ")).map((line) => line.split(" "));
  const devices = lines.filter((line) => line.startsWith("device\t")).map((line) => readDevice(line, links));
  if (!lines.includes("end")) return undefined;
  const [mode] = lines.filter((line) => line.startsWith("mode "));
  return { devices, ...(mode !== undefined && { mode: mode.slice("mode ".length).trim() }) };
}

/** A device, and all devices that use it: partitions and holders, at any depth. */
export function deviceAndUpper({ devices }: DiskInventory, name: string): readonly BlockDevice[] {
  const found = new Map<string, BlockDevice>();
  const visit = (one: string): void => {
    const device = devices.find((other) => other.name === one);
    if (!device || found.has(one)) return;
    found.set(one, device);
    for (const other of devices) if (other.disk === one || device.holders.includes(other.name)) visit(other.name);
  };
  visit(name);
  return [...found.values()];
}

/** In the order of disk-inventory.sh. */
const columns =
  "name path type size start disk serial wwn model fstype label pttype ptuuid partuuid partlabel mounts holders".split(
    " ",
  ) as readonly Exclude<keyof BlockDevice, "links">[];

function readDevice(line: string, links: readonly (readonly string[])[]): BlockDevice {
  const [, ...cells] = line.split("\t");
  const given = Object.fromEntries(columns.map((column, index) => [column, cells[index] ?? ""]));
  const device = given as Record<(typeof columns)[number], string>;
  return {
    ...device,
    size: Number(device.size),
    start: Number(device.start),
    mounts: wordsOf(device.mounts).map(unescape).toSorted(),
    holders: wordsOf(device.holders),
    links: links.flatMap(([, link = "", target]) => (`/dev/${target ?? ""}` === device.path ? [link] : [])).toSorted(),
  };
}

function wordsOf(text: string): readonly string[] {
  return [...new Set(text.split(" ").filter((word) => word !== ""))];
}

/** The kernel writes blanks as `\040` (proc_pid_mountinfo(5)). */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
