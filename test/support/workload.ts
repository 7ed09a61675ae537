import { spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createHash } from "node:crypto";
import { join } from "node:path";

/**
 * The contents of a node's folder: folders, generated files, links, and two files that guarded commands make. Paths are relative to that
 * folder.
 */
export interface Workload {
  readonly directories: readonly { readonly path: string; readonly mode: string }[];
  readonly files: readonly { readonly path: string; readonly mode: string; readonly lines: number }[];
  readonly links: readonly { readonly path: string; readonly target: string }[];
  /** The guards of the commands. */
  readonly commands: readonly ["creates", "unless"] | readonly [];
}

/** The workload W: 30 steps, by default 10 directories, 14 files of 1 to 4 KiB, 4 links and 2 commands. */
export function workload({ directories = 10, files = 14, links = 4, commands = true } = {}): Workload {
  const count = (length: number) => Array.from({ length }, (_, index) => index);
  return {
    directories: count(directories).map((at) => ({ path: `d${at}`, mode: at % 2 === 0 ? "0750" : "0755" })),
    files: count(files).map((at) => ({
      path: directories > 0 ? `d${at % directories}/f${at}.conf` : `f${at}.conf`,
      mode: at % 2 === 0 ? "0640" : "0644",
      // Two larger ones (2 and 4 KiB), and the rest of 1 KiB, as configurations are.
      lines: at === 1 ? 32 : at === 2 ? 64 : 16,
    })),
    links: count(links).map((at) => ({ path: `l${at}`, target: directories > 0 ? `d${at % directories}` : "." })),
    commands: commands ? ["creates", "unless"] : [],
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

/** A file's text for a node (or a template's placeholder for its name): lines of about 64 bytes. */
export function contentOf({ path, lines }: Workload["files"][number], node: string): string {
  const line = (at: number) => `${`setting_${String(at).padStart(2, "0")} = ${path} of`.padEnd(60, ".")} ${node}\n`;
  return Array.from({ length: lines }, (_, at) => line(at)).join("");
}

/** The workload as a state of kcore, with its templates; `base` is the folder of all nodes. */
export function stateOf(work: Workload, base: string): Record<string, string> {
  const here = `${base}/{{node.name}}`;
  const there = `${base}/{{shell node.name}}`;
  const steps = [
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
    ...work.commands.map((guard) =>
      guard === "creates"
        ? `id: creates\n    creates: "${here}/created"\n    command.run: { cmd: "echo made >${there}/created" }`
        : `id: unless\n    unless: "grep -qs made ${there}/unless"\n    command.run: { cmd: "echo made >${there}/unless" }`,
    ),
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
    ...work.commands.map((guard) => [guard === "creates" ? "created" : "unless", `made ${sumOf("made\n")}`] as const),
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
