import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { Command, InvalidArgumentError, Option } from "commander";
import { openLab, type Lab, type LabOptions, type NodeSpec } from "#lab/lab.ts";

interface PlaceFlags {
  readonly name?: string;
  readonly bridge?: string;
  readonly net?: string;
}

interface UpFlags extends PlaceFlags {
  readonly busybox?: number;
  readonly disks: string;
  readonly root?: string;
  readonly mirror?: string;
}

type Output = "table" | "json";

/** `kcore lab`: throwaway real nodes on this machine. */
export function labCommand(): Command {
  const lab = new Command("lab").description("throwaway real nodes on this machine").enablePositionalOptions();
  const add = (usage: string, description: string): Command =>
    lab
      .command(usage)
      .description(description)
      .option("--name <name>", "another lab than the usual one")
      .option("--bridge <name>", "its bridge (default: from its name)")
      .option("--net <a.b.c>", "its network, the beginning of a /24 (default: from its name)");
  const json = (): Option =>
    new Option("-o, --output <format>", "how to print").choices(["table", "json"]).default("table");

  add("up [n]", "make and start nodes n1 … nN, and what they need first")
    .option("--busybox <count>", "also nodes b1 … of BusyBox and dropbear", count)
    .option("--disks <sizes>", "data disks of each node", "2G 2G")
    .option("--root <size>", "root file system of each node (default: 8G)")
    .option("--mirror <url>", "where Debian comes from (default: where this machine's apt gets it)")
    .action(async (n: string | undefined, flags: UpFlags) => {
      const opened = await open(flags);
      await opened.up(specsOf(n === undefined ? undefined : count(n), flags));
      printTable(await opened.list());
    });
  add("down [node...]", "take nodes away, by default all, and leave nothing behind").action(
    async (names: string[], flags: PlaceFlags) => (await open(flags)).down(names),
  );
  add("list", "the lab's nodes")
    .addOption(json())
    .action(async (flags: PlaceFlags & { output: Output }) => {
      const nodes = await (await open(flags)).list();
      if (flags.output === "json") printJson(nodes);
      else printTable(nodes);
    });
  add("ssh <node> [command...]", "a shell on a node, or one command")
    .option("--user <user>", "root, ops (sudo without a password) or opspw (sudo with “lab-password”)", "root")
    .passThroughOptions()
    .action(async (name: string, command: string[], flags: PlaceFlags & { user: string }) => {
      const node = await (await open(flags)).node(name);
      await node.requireRunning();
      const child = spawn("ssh", [...node.sshArguments(flags.user), ...command], { stdio: "inherit" });
      const [code] = (await once(child, "close")) as [number | null];
      process.exitCode = code ?? 255;
    });
  add("power-cut <node>", "end a node as a power cut does: what it had not synced is lost").action(
    async (name: string, flags: PlaceFlags) => (await (await open(flags)).node(name)).powerCut(),
  );
  add("start <node>", "start a node again").action(async (name: string, flags: PlaceFlags) =>
    (await (await open(flags)).node(name)).start(),
  );
  add("cut <node>", "take a node off the network").action(async (name: string, flags: PlaceFlags) =>
    (await (await open(flags)).node(name)).cut(),
  );
  add("heal <node>", "put a node back on the network").action(async (name: string, flags: PlaceFlags) =>
    (await (await open(flags)).node(name)).heal(),
  );
  add("disks <node>", "a node's data disks: serial, stable name, size")
    .addOption(json())
    .action(async (name: string, flags: PlaceFlags & { output: Output }) => {
      const { disks } = await (await open(flags)).node(name);
      if (flags.output === "json") printJson(disks);
      else printTable(disks);
    });
  add("roster", "a roster of the running nodes, with pinned host keys")
    .option("--out <file>", "write it there (default: print it)")
    .action(async (flags: PlaceFlags & { out?: string }) => {
      const text = await (await open(flags)).roster();
      if (flags.out === undefined) process.stdout.write(text);
      else await writeFile(flags.out, text, { mode: 0o600 });
    });
  return lab;
}

function open({ name, bridge, net, mirror }: PlaceFlags & { mirror?: string }): Promise<Lab> {
  const options: LabOptions = { log: (line) => process.stderr.write(`${line}\n`) };
  const given = Object.fromEntries(
    Object.entries({ name, bridge, net, mirror }).filter(([, value]) => value !== undefined),
  );
  return openLab({ ...options, ...given });
}

function specsOf(n: number | undefined, { busybox = 0, disks, root }: UpFlags): NodeSpec[] {
  const sizes = disks.split(/[\s,]+/).filter((size) => size !== "");
  const rest = { disks: sizes, ...(root === undefined ? {} : { root }) };
  const names = (letter: string, total: number): string[] =>
    Array.from({ length: total }, (_, index) => `${letter}${index + 1}`);
  return [
    ...names("n", n ?? (busybox > 0 ? 0 : 2)).map((name): NodeSpec => ({ name, kind: "debian", ...rest })),
    ...names("b", busybox).map((name): NodeSpec => ({ name, kind: "busybox", ...rest })),
  ];
}

function count(text: string): number {
  if (!/^(?:0|[1-9]\d?)$/.test(text)) throw new InvalidArgumentError("a number of nodes, 0 to 99");
  return Number(text);
}

function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}

/** Columns as wide as their widest cell; the names of the fields are the headings. */
function printTable(rows: readonly object[]): void {
  const [first] = rows;
  if (first === undefined) return;
  const headings = Object.keys(first);
  const cells = rows.map((row) => Object.values(row).map(String));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...cells.map((row) => (row[column] ?? "").length)),
  );
  for (const row of [headings.map((heading) => heading.toUpperCase()), ...cells]) {
    process.stdout.write(
      `${row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()}\n`,
    );
  }
}
