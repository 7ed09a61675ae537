import { spawnSync } from "node:child_process";
import { existsSync, globSync, readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, extname, join, resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { LoginName } from "#engine/roster/entry-fields.ts";
import type { AnsibleAnswer } from "#engine/roster/import/asked.ts";
import { formats, type Format } from "#engine/roster/import/guess.ts";
import { importRoster, type Beside, type ForeignFile, type Imported } from "#engine/roster/import/import.ts";
import { rosterFileNames } from "#engine/roster/roster-files.ts";
import { decodeSource, MAX_ROSTER_BYTES } from "#engine/yaml/scan.ts";
import { readBytes } from "#engine/yaml/read.ts";
import { visible } from "#errors/draw.ts";
import { KcoreError } from "#errors/problem.ts";
import { addProjectOption, addResultOption, type CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { unwritten } from "../project/write-asked.ts";
import { printJson } from "../terminal/print-json.ts";
import { createFile } from "#base/file.ts";
import { makeFolder } from "#base/folder.ts";
import { namedFile } from "./edit-roster-file.ts";
import { groupNames, ownRoster, rosterIfAny } from "./own-roster.ts";

interface ImportFlags extends CommonFlags {
  readonly from?: Format;
  readonly file?: string;
  readonly user?: string;
  readonly dryRun?: boolean;
  readonly output: "table" | "json";
}

/** `kcore roster import`. */
export function importCommand(): Command {
  const command = addResultOption(
    addProjectOption(new Command("import").argument("<file...>", "the files; - is stdin")),
  )
    .description(
      "Write a new roster file from those of Salt, Ansible, ssh, Terraform or a table, and say what is left out",
    )
    .addHelpText(
      "after",
      `
Examples:
  kcore roster import inventory.ini --dry-run
  kcore roster import ~/.ssh/config --file ssh.yaml
  ansible-inventory -i hosts --list | kcore roster import --from ansible -
  terraform output -json | kcore roster import -`,
    )
    .addOption(new Option("--from <format>", "what the files are; else their content tells").choices(formats))
    .option("--file <file>", "the file to write, in roster/; else named as the first file")
    .addOption(
      new Option("--user <name>", "log in by this name where the files' own cannot be imported").argParser(loginName),
    )
    .option("--dry-run", "print the roster file, write nothing");
  return command.action(importFiles);
}

function loginName(text: string): string {
  const { error } = LoginName.safeParse(text);
  if (error) throw new InvalidArgumentError(`it ${error.issues[0]?.message}`);
  return text;
}

async function importFiles(names: readonly string[], flags: ImportFlags): Promise<void> {
  const root = projectFor(flags);
  const files = (await Promise.all(names.map(readForeign))).flat();
  const imported = importRoster(files, {
    ...(flags.from && { from: flags.from }),
    ...(flags.user !== undefined && { user: flags.user }),
    beside,
    roster: root === undefined ? noRoster : rosterIfAny(root),
    groups: root === undefined ? new Set() : groupNames(root),
  });
  const file = flags.file === undefined ? fileOf(names, imported) : namedFile(flags.file);
  if (flags.output !== "json") tellLeftOut(imported);
  if (flags.dryRun !== true && root !== undefined) await write(root, file, imported);
  tell(imported, file, flags);
}

const noRoster = { nodes: new Map(), jumps: new Map(), positions: new Map(), files: [] };

/** A dry run needs no project; where there is one, its roster counts. */
function projectFor({ project, dryRun }: ImportFlags): string | undefined {
  try {
    return findProject(project);
  } catch (error) {
    const isNone = error instanceof KcoreError && error.problems[0]?.code === "PROJECT_NOT_FOUND";
    if (isNone && dryRun === true && project === undefined) return undefined;
    throw error;
  }
}

/** Reads a file, stdin (`-`), or those files of a folder that Ansible would take as inventories. */
async function readForeign(name: string): Promise<readonly ForeignFile[]> {
  if (statSync(name, { throwIfNoEntry: false })?.isDirectory())
    return regular(readdirSync(name).map((entry) => join(name, entry)))
      .filter((file) => !notInventory.test(basename(file)))
      .map((file) => ({ file, text: textOf(file) }));
  if (name !== "-") return [{ file: name, text: textOf(name) }];
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_ROSTER_BYTES) break;
  }
  return [{ file: "stdin", text: decodeSource("stdin", Buffer.concat(chunks), MAX_ROSTER_BYTES) }];
}

function textOf(path: string): string {
  return decodeSource(path, readBytes(path, { maxBytes: MAX_ROSTER_BYTES }), MAX_ROSTER_BYTES);
}

/** What lies beside the files: of ssh what is included, of Ansible the variables of groups and hosts. */
const beside: Beside = {
  included: (pattern, from) => {
    const path = resolve(dirname(resolve(from)), pattern.replace(/^~(?=\/)/, homedir()));
    return regular(globSync(path)).map((file) => ({ file, text: textOf(file) }));
  },
  variablesOf: (inventory, kind, name) => {
    if (inventory === "stdin" || /[/\0]|^\.\.?$/.test(name)) return [];
    const base = join(dirname(inventory), kind, name);
    // Ansible takes the first of these that exists.
    const path = ["", ".yml", ".yaml", ".json"].map((ending) => `${base}${ending}`).find((one) => existsSync(one));
    return path === undefined ? [] : variableFiles(path).map((file) => ({ file, text: textOf(file) }));
  },
  askAnsible: (inventories) => {
    // Ansible executes an executable inventory; an import must execute nothing.
    if (inventories.some((file) => (statSync(file).mode & 0o111) !== 0)) return undefined;
    const args = [...inventories.flatMap((file) => ["-i", resolve(file)]), "--list"];
    // Ansible obeys the ansible.cfg of its working folder; “/” keeps out one that came with the inventory and names plugins.
    const { status, stdout } = spawnSync("ansible-inventory", args, {
      cwd: "/",
      env: { ...process.env, ANSIBLE_INVENTORY_ENABLED: "ini,yaml" },
      encoding: "utf8",
      maxBuffer: 1 << 28,
    });
    try {
      return status === 0 ? (JSON.parse(stdout) as AnsibleAnswer) : undefined;
    } catch {
      // Python prints an infinite number as JSON has none.
      return undefined;
    }
  },
};

/** File names that Ansible ignores in a folder of inventories. */
const notInventory = /^\.|~$|\.(pyc|pyo|swp|bak|rpm|md|txt|rst|orig|ini|cfg|retry)$/;

/** The file of variables, or all such files below a folder, without hidden files, backups and other endings. */
function variableFiles(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .filter((name) => !/^\.|~$/.test(name))
    .toSorted()
    .flatMap((name) => {
      const entry = join(path, name);
      const found = statSync(entry, { throwIfNoEntry: false });
      if (found?.isDirectory()) return extname(name) === "" ? variableFiles(entry) : [];
      return found?.isFile() && /^(\.(yml|yaml|json))?$/.test(extname(name)) ? [entry] : [];
    });
}

function regular(paths: readonly string[]): string[] {
  return paths.filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true).toSorted();
}

function fileOf([first = ""]: readonly string[], { formats: [format = "csv"] }: Imported): string {
  const base = basename(first)
    .replace(/\.\w+$/, "")
    .replaceAll(/[^A-Za-z0-9_-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  return `roster/${base === "" || base === "defaults" ? format : base}.yaml`;
}

/** A new file, whole and accepted by the roster's own rules, or none. */
async function write(root: string, file: string, { text, draft }: Imported): Promise<void> {
  if (draft.nodes.size === 0)
    throw new KcoreError({
      code: "ROSTER_IMPORT",
      message: "there is no node to import",
    });
  if (rosterFileNames(root).includes(basename(file)))
    throw new KcoreError({
      code: "USAGE",
      message: `${file} is there already, and an import writes over nothing`,
      hint: "name another one: --file NAME.yaml",
    });
  ownRoster(root, { instead: { file, text } });
  await makeFolder(join(root, "roster"));
  await createFile(join(root, file), text, { mode: 0o644 }).catch((cause: unknown) => {
    throw unwritten(file, cause);
  });
}

/** Before anything is written, so that it is seen also where nothing can be. */
function tellLeftOut({ leftOut }: Imported): void {
  for (const { at, what, why } of leftOut)
    process.stderr.write(`${visible(`${at.file}:${at.line}`)}  left out: ${visible(what)}: ${visible(why)}\n`);
}

function tell(
  { draft, text, leftOut, formats: kinds }: Imported,
  file: string,
  { dryRun = false, output }: ImportFlags,
): void {
  if (output === "json") {
    const names = { nodes: [...draft.nodes.keys()], groups: [...draft.groups.keys()], jumps: [...draft.jumps.keys()] };
    const flat = leftOut.map(({ at: { file: from, line, column }, what, why }) => ({
      file: from,
      line,
      column,
      what,
      why,
    }));
    const result = { file, written: !dryRun, formats: kinds, ...names, leftOut: flat, ...(dryRun && { text }) };
    process.stdout.write(`${printJson(result, 2)}\n`);
    return;
  }
  if (dryRun) process.stdout.write(text);
  else {
    const counts = [`${draft.nodes.size} nodes`, `${draft.groups.size} groups`, `${draft.jumps.size} jump hosts`];
    process.stdout.write(`imported ${counts.join(", ")} into ${file}\nnext: kcore roster trust '*'\n`);
  }
}
