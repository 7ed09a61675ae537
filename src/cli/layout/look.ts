import { exitCodes, KcoreError } from "#errors/problem.ts";
import { readPairs } from "../install/look.ts";
import { refusal } from "./reasons.ts";

/** A block device as the node tells it; sizes and places in bytes. */
export interface Device {
  readonly name: string;
  readonly path: string;
  readonly type: string;
  readonly size: number;
  /** Where a partition begins on its disk. */
  readonly start: number;
  /** The disk that a partition lies on. */
  readonly disk?: string;
  readonly fstype: string;
  readonly label: string;
  /** Where it is mounted, `[SWAP]` for swap. */
  readonly mounts: readonly string[];
  readonly model: string;
  readonly serial: string;
  readonly wwn: string;
  readonly ptuuid: string;
  readonly pttype: string;
  readonly partuuid: string;
  readonly partlabel: string;
  readonly isReadOnly: boolean;
  /** Names of devices upon it. */
  readonly holders: readonly string[];
}

/** What a node shows of its disks, and what it says of who may change them. */
export interface Sight {
  readonly devices: ReadonlyMap<string, Device>;
  /** Links below /dev, and the names of the devices that they lead to. */
  readonly links: ReadonlyMap<string, string>;
  /** Devices of imported ZFS pools; `?`: nobody can tell. */
  readonly poolMembers: ReadonlySet<string>;
  /** The words of /etc/kcore/disk-management-mode; undefined: there is no such file. */
  readonly mode?: string;
}

/**
 * Mounts are read by number (mountinfo), as lsblk tells one of several; what lies on a device is read from it (blkid), not from
 * what udev remembers.
 */
export const lookText = `export LC_ALL=C
command -v blkid >/dev/null || { echo 'blkid: not found' >&2 && exit 1; }
lsblk -a -b -P -o KNAME,PATH,TYPE,SIZE,MOUNTPOINT,MODEL,SERIAL,WWN,RO || exit 1
for path in /sys/class/block/*; do
  name=\${path##*/}
  echo "D $name $(cat "$path/dev")"
  if [ -e "$path/partition" ]; then disk=$(readlink -f "$path/..") && echo "P $name \${disk##*/} $(cat "$path/start")"; fi
  for holder in "$path/holders/"*; do [ ! -e "$holder" ] || echo "H $name \${holder##*/}"; done
  case $name:$(cat "$path/size") in
    fd* | ram* | *:0) ;;
    *)
      found=$(blkid -p -o export "/dev/$(printf '%s' "$name" | tr '!' /)" 2>/dev/null)
      # Several signatures that contradict each other.
      [ $? != 8 ] || found=TYPE=ambivalent
      [ -z "$found" ] || printf '%s\\n' "$found" | sed -e "s/^/B $name /"
      ;;
  esac
  if [ -r "$path/loop/backing_file" ]; then below=$(readlink -f "$(cat "$path/loop/backing_file")") && [ -b "$below" ] && echo "H \${below##*/} $name"; fi
done
awk '{ print "M", $3, $5 }' /proc/self/mountinfo || exit 1
find /dev -type l 2>/dev/null | while read -r link; do
  if device=$(readlink -f "$link") && [ -b "$device" ]; then echo "L $link \${device#/dev/}"; fi
done
if [ -e /sys/module/zfs ]; then
  pools=$(zpool status -LP 2>/dev/null) || pools='/dev/?'
  printf '%s\\n' "$pools" | awk '$1 ~ /^\\/dev\\// { sub("/dev/", "", $1); print "Z", $1 }'
fi
if [ -e /etc/kcore/disk-management-mode ]; then echo "O $(cat /etc/kcore/disk-management-mode)"; fi
echo E`;

/** Nothing is judged by a look that failed, or by half of one. */
export function probeFailed(message: string, detail?: string): KcoreError {
  return new KcoreError(refusal({ code: "DISK_LAYOUT_PROBE_FAILED", message, detail }), { exitCode: exitCodes.failed });
}

/**
 * Reads what `lookText` printed on a node. What breaks off in the middle tells nothing (fail closed).
 * @throws KcoreError DISK_LAYOUT_PROBE_FAILED
 */
export function readSight(node: string, text: string): Sight {
  const lines = text.split("\n");
  const rows = lines.map(readPairs).filter((row) => row.has("KNAME"));
  if (!lines.includes("E") || rows.length === 0) throw probeFailed(`what lsblk tells of ${node}'s disks breaks off`);
  const words = (kind: string): readonly (readonly string[])[] =>
    lines.filter((line) => line.startsWith(`${kind} `)).map((line) => line.split(" ").slice(1));
  const numbers = new Map(words("D").map(([name = "", number = ""]) => [name, number]));
  const parts = new Map(words("P").map(([name = "", disk = "", start = ""]) => [name, { disk, start }]));
  const devices = rows.map((row): readonly [string, Device] => {
    const word = (key: string): string => (row.get(key) ?? "").trim();
    const name = word("KNAME");
    const { disk, start } = parts.get(name) ?? { start: "0" };
    const mounts = words("M").flatMap(([number, place = ""]) =>
      number === numbers.get(name) ? [unescape(place)] : [],
    );
    const mount = word("MOUNTPOINT");
    const found = new Map(
      words("B").flatMap(([device, ...rest]) => (device === name ? [splitAtFirst(rest.join(" "))] : [])),
    );
    const signature = (key: string): string => (found.get(key) ?? "").replaceAll(/\\(.)/g, "$1");
    return [
      name,
      {
        name,
        path: word("PATH"),
        type: word("TYPE"),
        size: Number(word("SIZE")),
        start: Number(start) * 512,
        ...(disk === undefined ? {} : { disk }),
        fstype: signature("TYPE"),
        label: signature("LABEL"),
        mounts: [...new Set([...mounts, ...(mount === "" ? [] : [mount])])].toSorted(),
        model: word("MODEL").replaceAll("_", " "),
        serial: word("SERIAL"),
        wwn: word("WWN"),
        ptuuid: signature("PTUUID").toLowerCase(),
        pttype: signature("PTTYPE"),
        partuuid: signature("PART_ENTRY_UUID").toLowerCase(),
        partlabel: signature("PART_ENTRY_NAME"),
        isReadOnly: word("RO") === "1",
        holders: words("H").flatMap(([below, holder = ""]) => (below === name ? [holder] : [])),
      },
    ];
  });
  const mode = words("O")[0]?.join(" ").trim();
  return {
    devices: new Map(devices),
    links: new Map(words("L").map(([link = "", device = ""]) => [link, device])),
    poolMembers: new Set(words("Z").map(([device = ""]) => device)),
    ...(mode === undefined ? {} : { mode }),
  };
}

function splitAtFirst(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  return [text.slice(0, at), text.slice(at + 1)];
}

/** mountinfo writes blanks as `\040` (proc(5)). */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** What lies upon a device, however many layers of it: partitions, holders, holders of those. */
export function above({ devices }: Sight, name: string): readonly Device[] {
  const found = new Map<string, Device>();
  const visit = (one: string): void => {
    const device = devices.get(one);
    if (!device || found.has(one)) return;
    found.set(one, device);
    for (const holder of device.holders) visit(holder);
    for (const other of devices.values()) if (other.disk === one) visit(other.name);
  };
  visit(name);
  return [...found.values()];
}
