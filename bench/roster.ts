import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { childCpuClock } from "#support/cpu.ts";
import { idOfName, loadRoster } from "#engine/roster/load-roster.ts";

/**
 * The cost of a roster of many nodes at a command's start, each time in a process that has loaded none before: `node
 * bench/roster.ts [NODES] [ROUNDS]`. CPU counts; elapsed time, told beside it, includes other processes of the machine. Then completions,
 * by the bundle.
 */
const [nodes = "5000", rounds = "7", project] = process.argv.slice(2);
const files = 10;
const names = {
  load: "loadRoster, cold: CPU",
  clock: "loadRoster, cold: by the clock",
  parse: "the yaml library's own parse of the same text: CPU",
} as const;

if (project === undefined) {
  const folder = mkdtempSync(join(tmpdir(), "kcore-bench-roster-"));
  try {
    writeRoster(folder, Number(nodes));
    const figures = Array.from({ length: Number(rounds) }, () => once(folder));
    for (const key of ["load", "clock", "parse"] as const) {
      const [low, middle, high] = [0, 0.5, 1].map((part) =>
        quantile(
          figures.map((figure) => figure[key]),
          part,
        ),
      );
      const each = ((middle ?? 0) / Number(nodes)).toFixed(3);
      process.stdout.write(
        `${names[key].padEnd(52)} ${each} ms a node  (${low?.toFixed(0)} … ${high?.toFixed(0)} ms in all)\n`,
      );
    }
    for (const words of ["state apply ", "orchestrate deploy_node ", "exec --on "]) measureCompletion(folder, words);
  } finally {
    rmSync(folder, { recursive: true });
  }
} else process.stdout.write(JSON.stringify(measure(project)));

interface Figures {
  readonly load: number;
  readonly clock: number;
  readonly parse: number;
}

function once(folder: string): Figures {
  const { stdout, stderr } = spawnSync(process.execPath, [import.meta.filename, nodes, rounds, folder], {
    encoding: "utf8",
  });
  if (stdout === "") throw new Error(stderr);
  return JSON.parse(stdout) as Figures;
}

/** The bundle's answer to a shell that completes these words, after the first one, which makes the index. */
function measureCompletion(folder: string, words: string): void {
  const complete = (): void => {
    const main = join(import.meta.dirname, "../dist/main.js");
    const { status } = spawnSync(process.execPath, [main, "completion", "candidates", "--", ...words.split(" ")], {
      cwd: folder,
    });
    if (status !== 0) throw new Error(`the completion ended with ${status}`);
  };
  complete();
  const spent = childCpuClock();
  const times = Array.from({ length: Number(rounds) }, () => {
    const start = performance.now();
    complete();
    return performance.now() - start;
  });
  const [low, middle] = [0, 0.5].map((part) => quantile(times, part).toFixed(0));
  const cpu = (spent() / Number(rounds)).toFixed(0);
  process.stdout.write(`${`${words}<TAB>`.padEnd(52)} ${middle} ms (${low} at least), ${cpu} ms of CPU\n`);
}

function measure(folder: string): Figures {
  const [start, before] = [performance.now(), process.cpuUsage()];
  const { size } = loadRoster(folder).nodes;
  const [load, clock] = [cpuSince(before), performance.now() - start];
  if (size !== Number(nodes)) throw new Error(`${size} nodes were loaded`);
  const texts = Array.from({ length: files }, (_, file) => readFileSync(join(folder, `roster/dc${file}.yaml`), "utf8"));
  const parsing = process.cpuUsage();
  for (const text of texts) parse(text, { uniqueKeys: false });
  return { load, clock, parse: cpuSince(parsing) };
}

function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function quantile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.round(part * (values.length - 1))] ?? NaN;
}

/** Nodes as rosters have them: ids, host keys, disks, groups, labels and variables. */
function writeRoster(folder: string, count: number): void {
  for (const name of ["roster", "orchestrate"]) mkdirSync(join(folder, name));
  writeFileSync(
    join(folder, "roster/defaults.yaml"),
    "defaults: { user: ops }\ngroups:\n  ssd: { labels: { tier: ssd } }\n",
  );
  for (let file = 0; file < files; file++) {
    const entries = Array.from({ length: count / files }, (_, index) => nodeText(file, index));
    writeFileSync(join(folder, `roster/dc${file}.yaml`), `defaults: { dc: DC${file} }\nnodes:\n${entries.join("")}`);
  }
}

function nodeText(file: number, index: number): string {
  const name = `n${file}-${index}`;
  return `  ${name}:
    address: 10.${file}.${index >> 8}.${index & 255}
    id: ${idOfName(name)}
    roles: [worker]
    groups: [ssd]
    labels: { rack: r${index % 40}, zone: z${file} }
    hostKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKZm3n2JHpAGgqzTBrYJKx8mVGdrcLiBZ0mGgLLdcW5b]
    disks:
      - { serial: S3Z8NB0K${index}, use: volumes }
      - { serial: S4Z8NB0K${index}, use: os }
    vars: { rack: ${index % 40}, note: "third shelf" }
`;
}
