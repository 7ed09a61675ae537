import { writeFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { Command, InvalidArgumentError, Option } from "commander";
import { run } from "#base/process.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { requireRoot } from "#lab/prepare-host.ts";
import { listLabs, openLab, type Lab, type LabNode, type LabOptions, type NodeSpec } from "#lab/lab.ts";
import { suggestHint } from "#errors/suggest.ts";
import { addResultOption } from "../options.ts";
import { writeFailureReason } from "../project/write-asked.ts";
import { toStderr } from "../terminal/say.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import { printRows } from "../terminal/format-result.ts";
import { once } from "node:events";
import type { Socket } from "node:net";

interface PlaceFlags {
  readonly name?: string;
  readonly bridge?: string;
  readonly net?: string;
}

interface UpFlags extends PlaceFlags {
  readonly busybox?: number;
  readonly vm?: number | true;
  readonly live?: boolean;
  readonly with?: "zfs";
  readonly tpm?: boolean;
  readonly disks: string;
  readonly root?: string;
  readonly mirror?: string;
  readonly packages?: string;
}

type ListFormat = "table" | "json";

/** `kcore lab`. */
export function labCommand(): Command {
  const lab = new Command("lab")
    .description(
      "Throwaway test machines on this computer, containers and virtual ones: to try kcore on, and to test it with",
    )
    .enablePositionalOptions()
    .addHelpText(
      "after",
      `
Examples:
  kcore lab up 2                            n1 and n2
  kcore lab up 3 --busybox 1 --disks "1G 1G 500M"
  kcore lab up --vm --with zfs              v1 with ZFS, which is built the first time
  kcore lab up --vm 2 --disks 2G,2G         v1 and v2, virtual machines with kernels of their own
  kcore lab up --packages nginx,cron        n1 and n2, which can install these, too
  kcore lab up --vm --tpm                   v1 with a TPM of its own
  kcore lab up --name six --net fd77:0:0:1  n1 and n2 in a lab that has IPv6 alone
  kcore lab roster --out roster/lab.yaml
  kcore lab ssh n1                          a shell on n1
  kcore lab power-cut n1; kcore lab start n1
  kcore lab down                            take everything away`,
    );
  const add = (usage: string, description: string, ...examples: readonly string[]): Command =>
    lab
      .command(usage)
      .description(description)
      .addHelpText("after", `\nExamples:\n${examples.map((example) => `  kcore lab ${example}`).join("\n")}`)
      .option("--name <name>", "another lab than the usual one")
      .option("--bridge <name>", "the lab's bridge (default: from the lab's name)")
      .option(
        "--net <network>",
        "the lab's network: the beginning of a /24, or of a /64 of IPv6 (default: from its name)",
      );

  add(
    "up",
    "Make and start nodes n1 … nN, and what they need first",
    "up 2",
    "up 3 --busybox 1 --disks '1G 1G 500M'",
    "up --vm 2 --disks 2G,2G",
    "up --vm 3 --live --disks 8G,2G",
  )
    .argument("[n]", "how many (default: 2, or none with --busybox or --vm)", count)
    .option("--busybox <count>", "also nodes b1 … of BusyBox and dropbear", count)
    .option("--vm [count]", "also nodes v1 … that are virtual machines (one, if no number is given)", count)
    .option("--live", "the virtual machines run a live system, to install one on their first disk")
    .addOption(new Option("--with <what>", "packages that the virtual machines get besides").choices(["zfs"]))
    .option("--tpm", "the virtual machines have a TPM 2.0")
    .option("--disks <sizes>", "data disks of each node", "2G 2G")
    .option("--root <size>", "root file system of each container (default: 8G)")
    .option("--packages <names>", "packages of Debian that the nodes can install beside the usual ones, now and later")
    .option("--mirror <url>", "where Debian comes from (default: where this machine's apt gets it)")
    .action(async (n: number | undefined, flags: UpFlags) => {
      const opened = await open(flags);
      await opened.up(specsOf(n, flags));
      printTable(await opened.list());
    });
  add(
    "down [node...]",
    "Take nodes away, by default all, and leave nothing behind",
    "down",
    "down n3 --name other",
  ).action(async (names: string[], flags: PlaceFlags) => (await open(flags)).down(names));
  addResultOption(
    add("list", "The nodes of all labs; with --name, of one", "list", "list --name other", "list -o json"),
  ).action(async (flags: PlaceFlags & { output: ListFormat }) => {
    requireRoot();
    const nodes = (await listLabs()).filter(({ lab: name }) => name === (flags.name ?? name));
    if (nodes.length === 0 && flags.output === "table") process.stderr.write("no nodes: start with “kcore lab up”\n");
    else printTable(nodes, flags.output);
  });
  add("ssh <node> [command...]", "A shell on a node, or one command", "ssh n1", "ssh n1 --user ops -- sudo id")
    .option("--user <user>", "root, ops (sudo without a password) or opspw (sudo with “lab-password”)", "root")
    .passThroughOptions()
    .action(async (name: string, command: string[], flags: PlaceFlags & { user: string }) => {
      const node = await (await open(flags)).node(name);
      await node.requireRunning();
      const { code } = await run(["ssh", ...node.sshArguments(flags.user), ...command], { inherit: "terminal" });
      process.exitCode = code;
    });
  for (const [command, what, does] of [
    ["power-cut", "End a node as a power cut does: unsynced writes are lost", "powerCut"],
    ["start", "Start a node again", "start"],
    ["cut", "Take a node off the network", "cut"],
    ["heal", "Put a node back on the network", "heal"],
  ] as const)
    add(`${command} <node>`, what, `${command} n1`).action(async (name: string, flags: PlaceFlags) =>
      (await (await open(flags)).node(name))[does](),
    );
  for (const [command, what] of [
    ["unplug", "Take a disk out of a virtual machine that runs"],
    ["plug", "Put a disk back that was taken out"],
  ] as const)
    add(`${command} <node> <serial>`, what, `${command} v1 v1-disk0`).action(
      async (name: string, serial: string, flags: PlaceFlags) => {
        const node = await (await open(flags)).node(name);
        await node[command](diskOf(node, serial));
      },
    );
  add(
    "console <node>",
    "Show a node's console, or open root's shell on a virtual one's second line",
    "console n1",
    "console v1 --shell",
  )
    .option("-f, --follow", "go on as it grows, until Ctrl-C")
    .option("--shell", "a shell without the network; Ctrl-] leaves it; or the command line on stdin (virtual machines)")
    .action(async (name: string, flags: PlaceFlags & { follow?: true; shell?: true }) => {
      const node = await (await open(flags)).node(name);
      if (flags.shell && process.stdin.isTTY) await talk(await node.consoleShell());
      else if (flags.shell) process.stdout.write(`${await node.onConsole(await text(process.stdin))}\n`);
      else await showFile(node.consoleLog, flags.follow === true);
    });
  addResultOption(
    add("disks <node>", "A node's data disks: serial, stable name, size", "disks n1", "disks n1 -o json"),
  ).action(async (name: string, flags: PlaceFlags & { output: ListFormat }) => {
    const { disks } = await (await open(flags)).node(name);
    printTable(disks, flags.output);
  });
  add("roster", "A roster of the running nodes, with pinned host keys", "roster --out roster/lab.yaml")
    .option("--out <file>", "write the roster there (default: print it)")
    .action(async (flags: PlaceFlags & { out?: string }) => {
      const text = await (await open(flags)).roster();
      if (flags.out === undefined) process.stdout.write(text);
      else await writeRoster(flags.out, text);
    });
  return lab;
}

async function open({ name, bridge, net, mirror, packages: named }: PlaceFlags & Partial<UpFlags>): Promise<Lab> {
  const packages = named?.split(/[\s,]+/).filter((one) => one !== "");
  const options: LabOptions = { tasks: shownTasks(), note: toStderr };
  const given = Object.fromEntries(
    Object.entries({ name, bridge, net, mirror, packages }).filter(([, value]) => value !== undefined),
  );
  return openLab({ ...options, ...given });
}

function specsOf(n: number | undefined, flags: UpFlags): NodeSpec[] {
  const { busybox = 0, vm = 0, live = false, tpm = false, with: extra, disks, root } = flags;
  const about = live ? "--live" : tpm ? "--tpm" : extra === undefined ? undefined : `--with ${extra}`;
  if (about !== undefined && vm === 0)
    throw usageError(`${about} is about virtual machines, and none was asked for`, `kcore lab up --vm ${about}`);
  const sizes = disks.split(/[\s,]+/).filter((size) => size !== "");
  const rest = { disks: sizes, ...(root === undefined ? {} : { root }) };
  const names = (letter: string, total: number): string[] =>
    Array.from({ length: total }, (_, index) => `${letter}${index + 1}`);
  return [
    ...names("n", n ?? (busybox > 0 || vm !== 0 ? 0 : 2)).map((name): NodeSpec => ({ name, kind: "debian", ...rest })),
    ...names("b", busybox).map((name): NodeSpec => ({ name, kind: "busybox", ...rest })),
    ...names("v", vm === true ? 1 : vm).map((name): NodeSpec => ({
      name,
      kind: "vm",
      ...rest,
      ...(live ? { live } : {}),
      ...(extra === "zfs" ? { zfs: true } : {}),
      ...(tpm ? { tpm } : {}),
    })),
  ];
}

/** The index of the node's disk with this serial. @throws KcoreError USAGE */
function diskOf({ name, disks }: LabNode, serial: string): number {
  const index = disks.findIndex((disk) => disk.serial === serial);
  if (index >= 0) return index;
  const serials = disks.map((disk) => disk.serial);
  throw usageError(
    `${name} has no disk “${serial}”`,
    suggestHint(serial, serials, `there are: ${serials.join(", ")}`) ?? `kcore lab disks ${name}`,
  );
}

function count(text: string): number {
  if (!/^(?:0|[1-9]\d?)$/.test(text)) throw new InvalidArgumentError("a number of nodes, 0 to 99");
  return Number(text);
}

/** Prints rows under the names of their fields; “-” stands for an absent field. */
function printTable(rows: readonly object[], output: ListFormat = "table"): void {
  const fields = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.map((row) => fields.map((field) => showCell((row as Record<string, unknown>)[field])));
  const heading = fields.map((field) => field.toUpperCase());
  if (output === "json" || fields.length > 0) printRows(rows, output, heading, cells);
}

function showCell(value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "string" ? value : "-";
}

/** Writes in place, as `writeAsked` does. @throws KcoreError LAB_ROSTER_UNWRITABLE */
async function writeRoster(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { mode: 0o600 });
  } catch (error) {
    const { why, hint } = writeFailureReason(file, error);
    throw new KcoreError(
      { code: "LAB_ROSTER_UNWRITABLE", message: `the roster ${file} cannot be written: ${why}`, hint },
      { cause: error },
    );
  }
}

/** Prints a file; with `follow` its last 200 lines and each addition, until the operator stops it. */
export async function showFile(path: string, follow: boolean): Promise<void> {
  await run(follow ? ["tail", "-n", "200", "-F", path] : ["cat", "--", path], { inherit: "terminal" });
}

/** Ctrl-], which leaves telnet(1), too. */
const leaveKey = 0x1d;

/** Connects the terminal (stdin must be one) to a serial line until the user leaves or the line ends. */
export async function talk(line: Socket): Promise<void> {
  const { stdin, stdout, stderr } = process;
  stdin.setRawMode(true);
  stderr.write("root's shell on the machine's second line; Ctrl-] leaves it\r\n");
  // The shell on the line shows no prompt, and kcore turned its echo off.
  line.write("PS1='# '; stty echo\n");
  const ended = once(line, "close");
  line.pipe(stdout, { end: false });
  stdin.on("data", (keys: Buffer) => void (keys.includes(leaveKey) ? line.destroy() : line.write(keys)));
  await ended;
  stdin.setRawMode(false);
  stdin.destroy();
  stderr.write("\n");
}
