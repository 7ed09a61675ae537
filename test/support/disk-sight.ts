import { readSight, type Sight } from "#cli/layout/look.ts";

/** A block device as the node would tell it. */
export interface Shown {
  readonly name: string;
  readonly size: number;
  readonly type?: string;
  readonly model?: string;
  readonly serial?: string;
  readonly wwn?: string;
  /** Of a partition: its disk, and where it begins in MiB. */
  readonly on?: readonly [disk: string, start: number];
  /** As blkid tells it. */
  readonly holds?: Readonly<Record<string, string>>;
  readonly mounts?: readonly string[];
  readonly swap?: boolean;
  readonly holders?: readonly string[];
  readonly readOnly?: boolean;
}

const MiB = 1024 ** 2;

/** What a node with these devices prints, sizes in MiB. */
export function printed(devices: readonly Shown[], more: readonly string[] = []): string {
  const rows = devices.map(
    ({ name, size, type = "disk", model = "", serial = "", wwn = "", swap = false, readOnly = false }) =>
      `KNAME="${name}" PATH="/dev/${name}" TYPE="${type}" SIZE="${size * MiB}" MOUNTPOINT="${swap ? "[SWAP]" : ""}" MODEL="${model}" SERIAL="${serial}" WWN="${wwn}" RO="${readOnly ? 1 : 0}"`,
  );
  const rest = devices.flatMap(({ name, on, holds = {}, mounts = [], holders = [] }, index) => [
    `D ${name} 8:${index}`,
    ...(on ? [`P ${name} ${on[0]} ${(on[1] * MiB) / 512}`] : []),
    ...Object.entries(holds).map(([key, value]) => `B ${name} ${key}=${value}`),
    ...mounts.map((place) => `M 8:${index} ${place}`),
    ...holders.map((holder) => `H ${name} ${holder}`),
  ]);
  return `${[...rows, ...rest, ...more, "E"].join("\n")}\n`;
}

export function sightOf(devices: readonly Shown[], more: readonly string[] = []): Sight {
  return readSight("n1", printed(devices, more));
}
