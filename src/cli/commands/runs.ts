import { readFile, rm } from "node:fs/promises";
import { Command, InvalidArgumentError, Option } from "commander";
import { parseRecording } from "#engine/events/recording.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { emptyRun, type RunModel } from "#engine/events/model.ts";
import { isAlive } from "#engine/run/process-mark.ts";
import { listRunIds, readHeader, runFolder, type RunFolder, type RunHeader } from "#engine/run/run-folder.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { formatDuration } from "#tui/line.ts";
import { addProjectOption, type CommonFlags } from "../options.ts";
import { givenPassphrase } from "../passphrase.ts";
import { findProject } from "../project.ts";
import { launch } from "../start-run.ts";
import { formatTable } from "../table.ts";
import { watchRun } from "../watch-run.ts";

interface ListFlags extends CommonFlags {
  readonly output: "table" | "json";
  readonly limit: number;
}

interface ViewFlags extends CommonFlags {
  readonly output: "plain" | "json";
}

interface ResumeFlags extends ViewFlags {
  readonly detach?: boolean;
  readonly passphraseFile?: string;
}

/** `kcore runs list|show|attach|resume|prune`. */
export function runsCommand(): Command {
  const runs = new Command("runs").description("Recorded and living runs of this project").addHelpText(
    "after",
    `
Examples:
  kcore runs list
  kcore runs show 20261121-061500-a1b2      the record of a run, as it was shown
  kcore runs attach last                    watch it live; Ctrl-C as in the first terminal
  kcore runs resume 20261121-061500-a1b2    go on where it stopped`,
  );
  const view = () =>
    new Option("-o, --output <view>", "how to show the run").choices(["plain", "json"]).default("plain");
  addProjectOption(runs.command("list"))
    .description("List runs, the newest last")
    .addOption(new Option("-o, --output <format>", "how to print").choices(["table", "json"]).default("table"))
    .addOption(new Option("--limit <n>", "at most so many").argParser(countOf).default(30))
    .action(list);
  addProjectOption(runs.command("show <id>"))
    .description("Show a recorded run (“last”: the newest)")
    .addOption(view())
    .action(show);
  addProjectOption(runs.command("attach <id>"))
    .description("Watch a living run; the view may come and go")
    .addOption(view())
    .action(attach);
  addProjectOption(runs.command("resume <id>"))
    .description("Go on with a run whose process died or that was stopped")
    .option("--detach", "leave as soon as the run has begun")
    .option("--passphrase-file <file>", "the passphrase of the cluster CA; else KCORE_CA_PASSPHRASE, else it is asked")
    .addOption(view())
    .action(resume);
  addProjectOption(runs.command("prune"))
    .description("Remove the records of ended runs but the newest ones")
    .addOption(new Option("--keep <n>", "how many to keep").argParser(countOf).default(50))
    .action(prune);
  return runs;
}

function countOf(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 0) return count;
  throw new InvalidArgumentError("a whole number is wanted");
}

interface Known {
  readonly folder: RunFolder;
  readonly header: RunHeader;
  readonly model: RunModel;
  readonly alive: boolean;
}

async function read(project: string, id: string): Promise<Known> {
  const folder = runFolder(project, id);
  const header = await readHeader(folder);
  const bytes = await readFile(folder.events).catch(() => Buffer.alloc(0));
  return {
    folder,
    header,
    model: reduceEvents(parseRecording(bytes, folder.events).events, emptyRun),
    alive: isAlive(header.process),
  };
}

function stateOf({ model, alive }: Known): string {
  if (alive && model.state !== "finished") return model.state;
  if (model.outcome === undefined) return "died";
  return model.runId === "" ? "refused" : model.outcome;
}

async function list({ project, output, limit }: ListFlags): Promise<void> {
  const root = findProject(project);
  const ids = limit === 0 ? [] : (await listRunIds(root)).slice(-limit);
  const known = await Promise.all(ids.map((id) => read(root, id).catch(() => undefined)));
  const found = known.filter((one) => one !== undefined);
  if (output === "json") {
    const plain = found.map((one) => ({
      id: one.folder.id,
      state: stateOf(one),
      started: new Date(one.header.created).toISOString(),
      milliseconds: Math.max(0, one.model.lastAt - one.header.created),
      who: one.header.who,
      command: one.header.request.command,
      nodes: [...one.model.nodes.keys()],
      exitCode: one.model.exitCode,
    }));
    process.stdout.write(`${JSON.stringify(plain, undefined, 2)}\n`);
    return;
  }
  const rows = found.map((one) => [
    one.folder.id,
    stateOf(one),
    formatDuration(Math.max(0, one.model.lastAt - one.header.created)),
    String(one.model.nodes.size),
    one.header.who,
    one.header.request.command,
  ]);
  process.stdout.write(
    rows.length > 0 ? formatTable(["ID", "STATE", "TIME", "NODES", "WHO", "COMMAND"], rows) : "no runs yet\n",
  );
}

async function show(id: string, { project, output }: ViewFlags): Promise<void> {
  const root = findProject(project);
  const { folder } = await read(root, await resolveId(root, id));
  await watchRun({ folder, output, replayOnly: true });
}

async function attach(id: string, { project, output }: ViewFlags): Promise<void> {
  const root = findProject(project);
  const { folder } = await read(root, await resolveId(root, id));
  process.exitCode = (await watchRun({ folder, output })).exitCode;
}

async function resume(id: string, { project, output, detach = false, passphraseFile }: ResumeFlags): Promise<void> {
  const root = findProject(project);
  const known = await read(root, await resolveId(root, id));
  const { folder, header, model } = known;
  if (known.alive)
    throw new KcoreError({
      code: "RUN_ALIVE",
      message: `run ${folder.id} is still going on`,
      hint: `kcore runs attach ${folder.id}`,
    });
  if (model.exitCode === exitCodes.done)
    throw new KcoreError({
      code: "RUN_FINISHED",
      message: `run ${folder.id} ended well; there is nothing to resume`,
      hint: `to do it again: ${header.request.command}`,
    });
  const launched = launch(folder, header, await givenPassphrase(passphraseFile));
  process.exitCode = (await watchRun({ folder, output, detach, launched, since: model.lastSeq })).exitCode;
}

async function prune({ project, keep }: CommonFlags & { readonly keep: number }): Promise<void> {
  const root = findProject(project);
  const ids = await listRunIds(root);
  let removed = 0;
  for (const id of ids.slice(0, Math.max(0, ids.length - keep))) {
    const folder = runFolder(root, id);
    const header = await readHeader(folder).catch(() => undefined);
    if (isAlive(header?.process)) continue;
    await rm(folder.path, { recursive: true, force: true });
    removed += 1;
  }
  process.stdout.write(`${removed} removed\n`);
}

/** `last` is the newest run. */
async function resolveId(project: string, id: string): Promise<string> {
  if (id !== "last") return id;
  const newest = (await listRunIds(project)).at(-1);
  if (newest !== undefined) return newest;
  throw new KcoreError({
    code: "RUN_UNKNOWN",
    message: "no run is recorded in this project yet",
    hint: "kcore orchestrate NAME TARGET",
  });
}
