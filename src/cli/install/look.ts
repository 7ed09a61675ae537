import type { Host } from "#engine/transport/host.ts";
import { KcoreError } from "#errors/problem.ts";

/** A block device as lsblk(8) tells it; sizes in bytes. */
export interface BlockDevice {
  readonly name: string;
  readonly path: string;
  readonly type: string;
  readonly size: number;
  readonly fstype: string;
  readonly mountpoint: string;
  readonly model: string;
  readonly serial: string;
  readonly wwn: string;
}

export interface NetworkCard {
  readonly name: string;
  readonly mac: string;
  readonly state: string;
  readonly mtu: number;
  readonly addresses: readonly string[];
}

// Constant texts, as the transport asks: every login shell can run them.
const disksText = `exec /bin/sh -c 'LC_ALL=C lsblk -b -P -o NAME,PATH,TYPE,SIZE,FSTYPE,MOUNTPOINT,MODEL,SERIAL,WWN'`;
const cardsText = `exec /bin/sh -c 'cd /sys/class/net && for n in *; do [ -e "$n/address" ] || continue; echo "N $n $(cat "$n/address") $(cat "$n/operstate") $(cat "$n/mtu")"; done; ip -o addr show 2>/dev/null | while read -r _ n f a _; do echo "A \${n%%@*} $f $a"; done'`;

/** The machine's block devices, as lsblk(8) lists them. @throws KcoreError PROBE_FAILED */
export async function lookAtDisks(host: Host): Promise<readonly BlockDevice[]> {
  const text = await run(host, disksText, "lsblk");
  return text.split("\n").flatMap((line) => {
    const found = readPairs(line);
    const word = (key: string): string => found.get(key) ?? "";
    if (!found.has("NAME")) return [];
    return [
      {
        name: word("NAME"),
        path: word("PATH"),
        type: word("TYPE"),
        size: Number(word("SIZE")),
        fstype: word("FSTYPE"),
        mountpoint: word("MOUNTPOINT"),
        model: word("MODEL").trim(),
        serial: word("SERIAL").trim(),
        wwn: word("WWN").trim(),
      },
    ];
  });
}

/** A line of `lsblk -P`: `KEY="value" KEY="value"`. */
export function readPairs(line: string): ReadonlyMap<string, string> {
  return new Map(
    [...line.matchAll(/([A-Z:]+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = "", value = ""]) => [key, unescape(value)]),
  );
}

/** lsblk writes odd bytes as `\xNN`. */
function unescape(text: string): string {
  return text.replaceAll(/\\x([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** The machine's network cards, from sysfs and ip(8). @throws KcoreError PROBE_FAILED */
export async function lookAtCards(host: Host): Promise<readonly NetworkCard[]> {
  const lines = (await run(host, cardsText, "reading /sys/class/net")).split("\n").map((line) => line.split(" "));
  return lines
    .filter(([kind]) => kind === "N")
    .map(([, name = "", mac = "", state = "", mtu = ""]) => ({
      name,
      mac,
      state,
      mtu: Number(mtu),
      addresses: lines.flatMap(([kind, card, , address = ""]) => (kind === "A" && card === name ? [address] : [])),
    }));
}

/** Bytes of what a machine answers. */
const longestAnswer = 1 << 20;

async function run(host: Host, command: string, what: string): Promise<string> {
  const channel = await host.exec(command);
  channel.end();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of channel.stdout) {
    length += chunk.length;
    // What a machine says about itself fits by far (requirement S-4).
    if (length > longestAnswer) channel.close();
    else chunks.push(chunk);
  }
  const { code } = await channel.exit;
  if (code === 0) return Buffer.concat(chunks).toString("utf8");
  throw new KcoreError(
    {
      code: "PROBE_FAILED",
      message: `${what} failed on ${host.name}: ${channel.stderrTail().trim() || `exit ${code ?? "unknown"}`}`,
    },
    { exitCode: 1 },
  );
}
