import { spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createHash } from "node:crypto";
import { join } from "node:path";

/**
 * The contents of a node's folder: folders, generated files, links, and files that guarded commands make once. Paths are relative to that
 * folder. Every target has the packages already, so that no run changes their step.
 */
export interface Workload {
  readonly directories: readonly { readonly path: string; readonly mode: string }[];
  readonly files: readonly { readonly path: string; readonly mode: string; readonly lines: number }[];
  readonly links: readonly { readonly path: string; readonly target: string }[];
  readonly commands: readonly { readonly path: string; readonly guard: Guard }[];
  readonly packages: readonly string[];
}

type Guard = "creates" | "unless" | "onlyIf";

const count = (length: number) => Array.from({ length }, (_, index) => index);

/** The workload W: 30 steps, by default 10 directories, 14 files of 1 to 4 KiB, 4 links and 2 commands. */
export function workload({ directories = 10, files = 14, links = 4, commands = true } = {}): Workload {
  return {
    directories: count(directories).map((at) => ({ path: `d${at}`, mode: at % 2 === 0 ? "0750" : "0755" })),
    files: count(files).map((at) => ({
      path: directories > 0 ? `d${at % directories}/f${at}.conf` : `f${at}.conf`,
      mode: at % 2 === 0 ? "0640" : "0644",
      // Two larger ones (2 and 4 KiB), and the rest of 1 KiB, as configurations are.
      lines: at === 1 ? 32 : at === 2 ? 64 : 16,
    })),
    links: count(links).map((at) => ({ path: `l${at}`, target: directories > 0 ? `d${at % directories}` : "." })),
    commands: commands ? (["creates", "unless"] as const).map((guard) => ({ path: guard, guard })) : [],
    packages: [],
  };
}

/** The same steps in folders of five levels and of four modes. */
export function nested(work: Workload): Workload {
  const modes = ["0750", "0755", "0700", "0711"] as const;
  const folder = (at: number) =>
    Array.from({ length: (at % 5) + 1 }, (_, level) => `d${at - (at % 5) + level}`).join("/");
  return {
    ...work,
    directories: work.directories.map((_, at) => ({ path: folder(at), mode: modes[at % 4] ?? "0755" })),
    files: work.files.map((file, at) => ({ ...file, path: `${folder(at % work.directories.length)}/f${at}.conf` })),
    links: work.links.map((link, at) => ({ ...link, target: folder(at % work.directories.length) })),
  };
}

/** The number of steps, all of which a first run changes. */
export function stepsOf({ directories, files, links, commands }: Workload): number {
  return directories.length + files.length + links.length + commands.length;
}

/**
 * The workload V, for which kcore was not made: 38 steps over trees of 3 to 5 levels. Each folder has a file of 8 to 32 KiB, each tree a link
 * to its innermost folder. Ten commands and packages are added. It has no service, since the targets run without systemd.
 */
function nestedWorkload({ trees = 3 } = {}): Workload {
  const levels = ["srv", "releases", "current", "shared", "tls"];
  const chains = count(trees).map((tree) => levels.slice(0, 3 + (tree % 3)).map((name) => `${name}${tree}`));
  const folders = chains.flatMap((chain) => chain.map((_, at) => chain.slice(0, at + 1).join("/")));
  const modeOf = (modes: readonly string[], at: number) => modes[at % modes.length] ?? "";
  return {
    directories: folders.map((path, at) => ({ path, mode: modeOf(["0755", "0750", "0700", "0711"], at) })),
    files: folders.map((folder, at) => ({
      path: `${folder}/f${at}.conf`,
      mode: modeOf(["0644", "0640", "0600", "0444"], at),
      lines: 128 * (1 + (at % 4)),
    })),
    links: chains.map(([top = "", ...below]) => ({ path: `${top}/inner`, target: below.join("/") })),
    commands: count(10).map((at) => ({
      path: `made${at}`,
      guard: (["creates", "unless", "onlyIf"] as const)[at % 3] ?? "creates",
    })),
    packages: ["bash", "coreutils", "openssh-server"],
  };
}

/** Both workloads, with so many times their directories, files and links. */
export const workloads = {
  W: (times = 1) => workload({ directories: 10 * times, files: 14 * times, links: 4 * times }),
  V: (times = 1) => nestedWorkload({ trees: 3 * times }),
} as const;

export type WorkloadName = keyof typeof workloads;
export const workloadNames = Object.keys(workloads) as readonly WorkloadName[];

/** A file's text for a node (or a template's placeholder for its name): lines of about 64 bytes. */
export function contentOf({ path, lines }: Workload["files"][number], node: string): string {
  const line = (at: number) => `${`setting_${String(at).padStart(2, "0")} = ${path} of`.padEnd(60, ".")} ${node}\n`;
  return Array.from({ length: lines }, (_, at) => line(at)).join("");
}

/** The shell text of the guards that look into a command's file. */
export function isMade(path: string): string {
  return `grep -qs made ${path}`;
}

/** The workload as a state of kcore, with its templates; `base` is the folder of all nodes. */
export function stateOf(work: Workload, base: string): Record<string, string> {
  const here = `${base}/{{node.name}}`;
  const there = `${base}/{{shell node.name}}`;
  const steps = [
    ...(work.packages.length > 0
      ? [`id: packages\n    package.installed: { names: [${work.packages.join(", ")}] }`]
      : []),
    ...work.directories.map(
      ({ path, mode }) => `id: ${path}\n    directory.managed: { path: "${here}/${path}", mode: "${mode}" }`,
    ),
    ...work.files.map(
      ({ path, mode }, at) =>
        `id: ${path}\n    file.managed: { path: "${here}/${path}", template: f${at}.hbs, mode: "${mode}" }`,
    ),
    ...work.links.map(
      ({ path, target }) => `id: ${path}\n    symlink.managed: { path: "${here}/${path}", target: "${target}" }`,
    ),
    ...work.commands.map(({ path, guard }) => {
      const texts = {
        creates: `${here}/${path}`,
        unless: isMade(`${there}/${path}`),
        onlyIf: `! ${isMade(`${there}/${path}`)}`,
      };
      return `id: ${path}\n    ${guard}: "${texts[guard]}"\n    command.run: { cmd: "echo made >${there}/${path}" }`;
    }),
  ];
  return {
    "states/workload.yaml": `steps:\n${steps.map((step) => `  - ${step}\n`).join("")}`,
    ...Object.fromEntries(work.files.map((file, at) => [`templates/f${at}.hbs`, contentOf(file, "{{node.name}}")])),
  };
}

/** Proves that a node's folder is exactly the workload: kinds, modes, contents by checksum, targets of links. @throws Error for a difference */
export function proveTree(work: Workload, folder: string, node: string): void {
  const wanted = new Map<string, string>([
    ...work.directories.map(({ path, mode }) => [path, `directory ${mode}`] as const),
    ...work.files.map((file) => [file.path, `file ${file.mode} ${sumOf(contentOf(file, node))}`] as const),
    ...work.links.map(({ path, target }) => [path, `link ${target}`] as const),
    ...work.commands.map(({ path }) => [path, `made ${sumOf("made\n")}`] as const),
  ]);
  const found = new Map<string, string>();
  for (const path of entriesBelow(folder)) {
    const file = join(folder, path);
    const stat = lstatSync(file);
    const mode = (stat.mode & 0o7777).toString(8).padStart(4, "0");
    if (stat.isSymbolicLink()) found.set(path, `link ${readlinkSync(file)}`);
    else if (stat.isDirectory()) found.set(path, `directory ${mode}`);
    else {
      const kind = wanted.get(path)?.startsWith("made") === true ? "made" : `file ${mode}`;
      found.set(path, `${kind} ${sumOf(readFileSync(file))}`);
    }
  }
  for (const path of new Set([...wanted.keys(), ...found.keys()]))
    if (wanted.get(path) !== found.get(path))
      throw new Error(`${folder}/${path} is ${found.get(path) ?? "absent"}, not ${wanted.get(path) ?? "absent"}`);
}

/** The relative paths of all entries below a folder. Links are not followed, unlike in readdir's own recursion. */
function entriesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const below = entry.isDirectory() ? entriesBelow(join(folder, entry.name)) : [];
    return [entry.name, ...below.map((path) => join(entry.name, path))];
  });
}

/** Makes an empty folder for each node. */
export function makeFolders(base: string, nodes: readonly string[], mode = 0o755): void {
  mkdirSync(base, { recursive: true });
  // On ext4, chattr(1) T keeps the nodes' files apart, as on disks of their own, so that no node pays for another's deletions. Other filesystems
  // refuse the flag.
  spawnSync("chattr", ["+T", base], { stdio: "ignore" });
  for (const node of nodes) mkdirSync(join(base, node), { recursive: true, mode });
}

function sumOf(bytes: string | Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
