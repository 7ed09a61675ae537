import { runTask, type RunTasks } from "#base/tasks.ts";
import { diskInventoryText, readDiskInventory, type DiskInventory } from "#engine/program/disk-inventory.ts";
import type { Host } from "#engine/transport/host.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { MachineFlags } from "../options.ts";
import { findMachine, withTransport } from "../roster/find-machine.ts";
import { logIn, pinOutsideRoster, verifyHostKey } from "./log-in.ts";

const cardsScript = `cd /sys/class/net && for n in *; do [ -e "$n/address" ] || continue; echo "N $n $(cat "$n/address") $(cat "$n/operstate") $(cat "$n/mtu")"; done; ip -o addr show 2>/dev/null | while read -r _ n f a _; do echo "A \${n%%@*} $f $a"; done`;

/** Logs in on one machine over SSH, in the roster or not, and does `work` there; the host key is verified as for an install. */
export function withMachine<Result>(
  flags: MachineFlags & { readonly project?: string },
  work: (host: Host) => Promise<Result>,
): Promise<Result> {
  const machine = findMachine(flags.node, flags.project, flags.identityFile);
  process.stderr.write(`${machine.note}\n`);
  return withTransport(async (transport) => {
    const pinned = await verifyHostKey(machine, transport, flags);
    if (!pinned.isInRoster) await pinOutsideRoster(machine, pinned);
    const host = await logIn(machine, transport, pinned.key, flags);
    try {
      return await work(host);
    } finally {
      await host.close();
    }
  });
}

/** The machine's block devices, listed as a task: blkid reads each of them. @throws KcoreError PROBE_FAILED */
export function listDisks(host: Host, tasks: RunTasks): Promise<DiskInventory> {
  const what = "listing the disks";
  const list = async (): Promise<DiskInventory> =>
    readDiskInventory(await runScript(host, diskInventoryText(), what)) ??
    failProbe(host, what, "the answer breaks off");
  return runTask(tasks, `${what} of ${host.name}`, list);
}

/** The machine's network cards, from sysfs and ip(8). @throws KcoreError PROBE_FAILED */
export async function readNetworkCards(host: Host) {
  const lines = (await runScript(host, cardsScript, "reading /sys/class/net"))
    .split("\n")
    .map((line) => line.split(" "));
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

const maxAnswerBytes = 1 << 20;

async function runScript(host: Host, input: string, what: string): Promise<string> {
  const channel = await host.exec("exec /bin/sh -s", { input });
  channel.end();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of channel.stdout) {
    length += chunk.length;
    // No real machine has a list of that size, and a hostile one must not fill the memory (S-4).
    if (length > maxAnswerBytes) channel.close();
    else chunks.push(chunk);
  }
  const { code } = await channel.exit;
  if (code === 0) return Buffer.concat(chunks).toString("utf8");
  return failProbe(host, what, channel.stderrTail().trim() || `exit ${code ?? "unknown"}`);
}

function failProbe({ name }: Host, what: string, why: string): never {
  const message = `${what} failed on ${name}: ${why}`;
  throw new KcoreError({ code: "PROBE_FAILED", message }, { exitCode: exitCodes.failed });
}
