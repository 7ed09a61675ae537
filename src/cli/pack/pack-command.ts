import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Command } from "commander";
import { KcoreError, type Problem, usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { packsFolder } from "#engine/project/folders.ts";
import { addProjectOption, addResultOption, type CommonFlags } from "../options.ts";
import { hashPack } from "./pack-files.ts";
import { findProject } from "../project/find-project.ts";
import { printRows } from "../terminal/format-result.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import {
  withPacksLock,
  changedPacks,
  dropPin,
  keepPack,
  packProblems,
  readPins,
  type Pin,
  type Pins,
} from "./pinned-packs.ts";
import { fetchPack, type PackSource } from "./fetch-pack.ts";

type Flags = CommonFlags & { readonly output: "table" | "json" };

/** `kcore pack`: states, templates, modules and orchestrations of others, pinned. */
export function packCommand(): Command {
  const pack = new Command("pack").description(
    "Packs: states, templates, modules and orchestrations that projects share, pinned by revision and hash",
  );
  const add = (usage: string, description: string, ...examples: readonly string[]): Command =>
    addResultOption(addProjectOption(pack.command(usage)))
      .description(description)
      .addHelpText("after", `\nExamples:\n${examples.map((one) => `  kcore pack ${one}`).join("\n")}`);
  add(
    "add <source>",
    "Put a pack into the project, and pin it; SOURCE is a git repository or a folder, a relative one from the project's folder",
    "add https://git.example.net/packs.git --path web --ref v1.2",
    "add ../packs/web",
  )
    .option("--ref <ref>", "a branch, tag or commit of a git repository (default: its HEAD)")
    .option("--path <path>", "the pack's folder within it")
    .action(addPack);
  add("update [name...]", "Fetch packs anew, by default all, and pin what came", "update", "update web --ref v1.3")
    .option("--ref <ref>", "another branch, tag or commit than the last time")
    .action(updatePacks);
  add("verify [name...]", "Compare packs with their pins, by default all; exit 2 if one differs", "verify").action(
    verify,
  );
  add("list", "The packs of the project", "list", "list -o json").action(({ project, output }: Flags) => {
    const folder = findProject(project);
    print(readPins(folder), output);
  });
  add("remove <name>", "Take a pack out of the project", "remove web").action(removePack);
  return pack;
}

async function addPack(
  source: string,
  { project, output, ref, path }: Flags & Omit<PackSource, "source">,
): Promise<void> {
  const folder = findProject(project);
  const from = { source, ...(path !== undefined && { path }), ...(ref !== undefined && { ref }) };
  const fetched = await fetchPack(folder, from, shownTasks(output));
  const { name } = fetched;
  const pin = await withPacksLock(folder, async () => {
    refuseExisting(folder, name);
    return keepPack(folder, from, fetched);
  });
  print({ [name]: pin }, output);
}

function refuseExisting(project: string, name: string): void {
  if (readPins(project)[name] !== undefined)
    throw usageError(
      `the project has a pack “${name}” already`,
      `kcore pack update ${name}, or kcore pack remove ${name} first`,
    );
  if (existsSync(join(project, packsFolder, name)))
    throw usageError(
      `packs/${name} is there already, and pinned nowhere`,
      "the changes there would be lost: move it away first",
    );
}

async function updatePacks(
  names: readonly string[],
  { project, output, ref }: Flags & { ref?: string },
): Promise<void> {
  const folder = findProject(project);
  const chosen = choose(readPins(folder), names);
  const updated: Record<string, Pin> = {};
  for (const [name, { source, path, ...pin }] of Object.entries(chosen)) {
    const newest = ref ?? pin.ref;
    const from = { source, ...(path !== undefined && { path }), ...(newest !== undefined && { ref: newest }) };
    const fetched = await fetchPack(folder, from, shownTasks(output));
    if (fetched.name !== name)
      throw new KcoreError({
        code: "PACK_INVALID",
        message: `the pack “${name}” calls itself “${fetched.name}” now`,
        hint: `kcore pack remove ${name}, then kcore pack add ${source}`,
      });
    // Changes by hand would be lost, so they are refused. Files of this very update may be there, if a kill interrupted it.
    const fetchedPin = { ...(chosen[name] as Pin), hash: hashPack(fetched.files) };
    updated[name] = await withPacksLock(folder, async () => {
      if ((await changedPacks(folder, { [name]: fetchedPin })).length > 0)
        await requireSame(folder, { [name]: chosen[name] as Pin });
      return keepPack(folder, from, fetched);
    });
  }
  print(updated, output);
}

async function verify(names: readonly string[], { project, output }: Flags): Promise<void> {
  const folder = findProject(project);
  const chosen = choose(readPins(folder), names);
  throwProblems(names.length === 0 ? await packProblems(folder) : await changedPacks(folder, chosen));
  print(chosen, output);
}

async function removePack(name: string, { project, output }: Flags): Promise<void> {
  const folder = findProject(project);
  const chosen = choose(readPins(folder), [name]);
  await withPacksLock(folder, async () => {
    await requireSame(folder, chosen);
    await rm(join(folder, packsFolder, name), { recursive: true, force: true });
    await dropPin(folder, name);
  });
  print(chosen, output);
}

/** The pins of these names, or all. @throws KcoreError USAGE */
function choose(pins: Pins, names: readonly string[]): Pins {
  if (names.length === 0) return pins;
  const all = Object.keys(pins);
  return Object.fromEntries(
    names.map((name) => {
      const pin = pins[name];
      if (pin !== undefined) return [name, pin];
      const hint = suggestHint(name, all, all.length === 0 ? "it has none" : `there are: ${all.join(", ")}`) ?? "";
      throw usageError(`the project has no pack “${name}”`, hint);
    }),
  );
}

/** Refuses packs that differ from their pins; a missing pack has nothing to lose. @throws KcoreError PACK_CHANGED */
async function requireSame(project: string, pins: Pins): Promise<void> {
  const there = Object.entries(pins).filter(([name]) => existsSync(join(project, packsFolder, name)));
  throwProblems(await changedPacks(project, Object.fromEntries(there)));
}

function throwProblems(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new KcoreError(problems);
}

function print(pins: Pins, output: Flags["output"]): void {
  const found = Object.entries(pins).map(([name, pin]) => ({ name, ...pin }));
  const rows = found.map(({ name, source, ref = "-", revision = "-", hash }) => [
    name,
    source,
    ref,
    revision.slice(0, 12),
    hash.slice(0, 19),
  ]);
  printRows(found, output, ["PACK", "SOURCE", "REF", "REVISION", "HASH"], rows, "no packs: kcore pack add SOURCE");
}
