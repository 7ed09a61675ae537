import { existsSync, globSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { LoginName } from "#engine/roster/entry-fields.ts";
import { formats, type Format } from "#engine/roster/import/guess.ts";
import type { ForeignFile, GivenFile } from "#engine/roster/import/found.ts";
import { importRoster, type Imported } from "#engine/roster/import/import.ts";
import { askAnsible, askSsh, readForeignText } from "#engine/roster/import/programs.ts";
import { rosterFileNames } from "#engine/roster/roster-paths.ts";
import { decodeSource } from "#engine/yaml/scan.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/regular-file.ts";
import { visible } from "#errors/draw.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { createFile } from "#base/file.ts";
import { makeFolder } from "#base/folder.ts";
import { addProjectOption, addResultOption, type CommonFlags } from "../options.ts";
import { findProject, projectIfAny } from "../project/find-project.ts";
import { writeError } from "../project/write-asked.ts";
import { groupNames, namedFile, ownRoster, rosterIfAny } from "./own-roster.ts";
import { printResult } from "../terminal/format-result.ts";

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
  ansible-inventory -i aws_ec2.yml --list | kcore roster import --from ansible -
  terraform output -json | kcore roster import -`,
    )
    .addOption(new Option("--from <format>", "the format of the files; else their content tells").choices(formats))
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
  // A dry run needs no project; where there is one, its roster counts.
  const root = flags.dryRun === true ? projectIfAny(flags.project) : findProject(flags.project);
  const files = await Promise.all(names.map(readForeign));
  const imported = importRoster(files, {
    ...(flags.from && { from: flags.from }),
    ...(flags.user !== undefined && { user: flags.user }),
    programs: { askAnsible, askSsh, included: readIncluded },
    roster: root === undefined ? noRoster : rosterIfAny(root),
    groups: root === undefined ? new Set() : groupNames(root),
  });
  const file = flags.file === undefined ? targetFile(names, imported) : namedFile(flags.file);
  if (flags.output !== "json") printNotes(imported);
  if (flags.dryRun !== true && root !== undefined) await writeImport(root, file, imported);
  printImport(imported, file, flags);
}

const noRoster = { nodes: new Map(), jumps: new Map(), positions: new Map(), files: [] };

/** Reads a file or stdin (`-`); only Ansible reads a folder. */
async function readForeign(name: string): Promise<GivenFile> {
  if (statSync(name, { throwIfNoEntry: false })?.isDirectory() === true)
    return { file: name, text: "", isFolder: true };
  if (name !== "-") {
    const hasVariables = ["group_vars", "host_vars"].some((kind) => existsSync(join(dirname(name), kind)));
    return { file: name, text: readForeignText(name), hasVariables };
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_ROSTER_BYTES) break;
  }
  return { file: "stdin", text: decodeSource("stdin", Buffer.concat(chunks), MAX_ROSTER_BYTES) };
}

/** Reads the files that an ssh_config includes; a path begins at the including file's folder or at `~`. */
function readIncluded(pattern: string, from: string): readonly ForeignFile[] {
  const path = resolve(dirname(resolve(from)), pattern.replace(/^~(?=\/)/, homedir()));
  return regularFiles(globSync(path)).map((file) => ({ file, text: readForeignText(file) }));
}

function regularFiles(paths: readonly string[]): string[] {
  return paths.filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true).toSorted();
}

function targetFile([first = ""]: readonly string[], { formats: [format = "csv"] }: Imported): string {
  const base = basename(first)
    .replace(/\.\w+$/, "")
    .replaceAll(/[^A-Za-z0-9_-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  return `roster/${base === "" || base === "defaults" ? format : base}.yaml`;
}

/** Writes a new roster file, whole or not at all. @throws KcoreError ROSTER_IMPORT, USAGE, and as loadRoster */
async function writeImport(root: string, file: string, { text, draft }: Imported): Promise<void> {
  if (draft.nodes.size === 0)
    throw new KcoreError({
      code: "ROSTER_IMPORT",
      message: "there is no node to import",
    });
  if (rosterFileNames(root).includes(basename(file)))
    throw usageError(
      `${file} is there already, and an import writes over nothing`,
      "name another one: --file NAME.yaml",
    );
  ownRoster(root, { instead: { file, text } });
  await makeFolder(join(root, "roster"));
  await createFile(join(root, file), text, { mode: 0o644 }).catch((cause: unknown) => {
    throw writeError(file, cause);
  });
}

/** Prints notes on stderr; called before anything is written, so that the operator sees them if the write fails. */
function printNotes({ leftOut, ownReader }: Imported): void {
  for (const { file: name, missing } of ownReader)
    process.stderr.write(`${visible(name)}  read by kcore's own reader: ${missing} is not installed\n`);
  for (const { at, what, why } of leftOut)
    process.stderr.write(`${visible(`${at.file}:${at.line}`)}  left out: ${visible(what)}: ${visible(why)}\n`);
}

function printImport(
  { draft, text, leftOut, formats: kinds, ownReader }: Imported,
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
    const result = {
      file,
      written: !dryRun,
      formats: kinds,
      ownReader,
      ...names,
      leftOut: flat,
      ...(dryRun && { text }),
    };
    printResult(result, "json");
    return;
  }
  if (dryRun) process.stdout.write(text);
  else {
    const counts = [`${draft.nodes.size} nodes`, `${draft.groups.size} groups`, `${draft.jumps.size} jump hosts`];
    process.stdout.write(`imported ${counts.join(", ")} into ${file}\nnext: kcore roster trust '*'\n`);
  }
}
