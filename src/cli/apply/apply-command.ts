import { Command } from "commander";
import { exitCodes, usageError } from "#errors/problem.ts";
import { drawProblems } from "#errors/draw.ts";
import { detectTheme } from "#tui/ink/theme.ts";
import { drawDifference, type ManifestChange, type ApplyFlags } from "./change.ts";
import { readManifestFiles } from "#manifests/read-manifest-files.ts";
import { wantsColor } from "../terminal/report-failure.ts";
import type { Manifest } from "#manifests/read-manifests.ts";
import { grantOption } from "../watch/run-options.ts";
import { addClusterOptions, addResultOption, caPassphrase, collect } from "../options.ts";
import { printResult } from "../terminal/format-result.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import { planCluster } from "./cluster-change.ts";
import { planNodeInstall } from "./install-change.ts";
import { planDiskLayout } from "./layout-change.ts";
import { planNode } from "./node-change.ts";
import { planRecord } from "./record-change.ts";
import { planClusterUpdate } from "./update-change.ts";

interface Flags extends Omit<ApplyFlags, "output" | "result"> {
  readonly filename?: readonly string[];
  readonly dryRun?: boolean;
  readonly output: "table" | "json" | "yaml";
}

const kindsHelp = `
Kinds: Cluster (a context with its CA); NodeInstall (what kcore node install is told); Node (a roster entry, and what the
cluster expects of the node); DiskLayout (partitions, file systems, volume groups and pools on disks of a node, drawn before
and after); ClusterUpdate (what nodes shall run next, and how it is rolled out); VM, Network and Image (records alone: kcore chooses a
VM's node, and starts no VM). Keys in camelCase or snake_case; several
documents are separated by ---.`;

/** `kcore apply -f FILE`. */
export function applyCommand(): Command {
  return withFiles(new Command("apply"))
    .description("Apply manifests: create or update what they describe")
    .option("--dry-run", "only say what would be done")
    .option("--skip-health", "for NodeInstall: do not look at the cluster's health first; this is recorded")
    .option("--yes", "answer every confirmation with yes")
    .option(...caPassphrase)
    .addHelpText(
      "after",
      `
Examples:
  kcore apply -f nodes.yaml
  kcore apply -f cluster.yaml -f nodes.yaml --dry-run
  kcore apply -f disks.yaml --grant S3Z8NB0K:9f2c51d07ab3e846
  generate-nodes | kcore apply -f -
${kindsHelp}`,
    )
    .action(apply);
}

/** `kcore diff -f FILE`. */
export function diffCommand(): Command {
  return withFiles(new Command("diff"))
    .description("Show what kcore apply would change; exits 1 if anything would")
    .addHelpText("after", `\nExamples:\n  kcore diff -f nodes.yaml\n  kcore diff -f disks.yaml -o json\n${kindsHelp}`)
    .action(diff);
}

function withFiles(command: Command): Command {
  return addResultOption(addClusterOptions(command), ["table", "json", "yaml"])
    .option("-f, --filename <file>", "a file of manifests, or - for stdin (repeatable)", collect)
    .addOption(grantOption())
    .option("--bundle <file>", "for ClusterUpdate: the bundle of kcore's runtime (kcore update bundle build)")
    .option("--wait", "wait for a node that another run holds instead of refusing");
}

/** A manifest's result as `-o json` prints it. A change with `data` (DiskLayout, ClusterUpdate) adds that data and the phase. */
interface ResultLine {
  readonly kind: Manifest["kind"];
  readonly name: string;
  readonly result: ManifestChange["outcome"];
  readonly differences: ManifestChange["differences"];
  readonly notes: ManifestChange["notes"];
  readonly phase?: ManifestPhase;
}

type ManifestPhase = "pending" | "applied" | "refused" | "failed";

async function apply({ filename, dryRun = false, output, ...flags }: Flags): Promise<void> {
  const manifests = await readManifestFiles(namedFiles(filename), shownTasks(output));
  const lines: ResultLine[] = [];
  try {
    for (const manifest of manifests) {
      // One after the other: a Node may need the Cluster before it.
      const change = await planManifest(manifest, { ...flags, result: output });
      if (output === "table" && change.outcome !== "unchanged") process.stdout.write(pictureOf(change));
      const code = await perform(manifest, change, { dryRun, lines });
      if (output === "table") {
        const done = change.outcome === "refused" ? change.whenGranted : change.outcome;
        const what = dryRun ? change.outcome : code === 0 ? done : "failed";
        process.stdout.write(`${manifestTitle(manifest)} ${what}${dryRun ? " (dry run)" : ""}\n`);
        for (const note of change.notes) process.stdout.write(`  ${note}\n`);
        if (dryRun) process.stdout.write(refusalsOf(change));
      }
      if (code === 0) continue;
      process.exitCode = code;
      break;
    }
  } finally {
    if (output !== "table") printResult(lines, output);
  }
}

/** Makes the change, except in a dry run, and adds the result, also a refusal, to `lines`. Returns the exit code. */
async function perform(
  manifest: Manifest,
  change: ManifestChange,
  { dryRun, lines }: { readonly dryRun: boolean; readonly lines: ResultLine[] },
): Promise<number> {
  if (change.outcome === "unchanged" || dryRun) {
    lines.push(lineOf(manifest, change, dryRun ? "pending" : "applied"));
    return change.outcome === "refused" ? exitCodes.failed : exitCodes.done;
  }
  try {
    const code = await change.perform();
    lines.push(lineOf(manifest, change, code === 0 ? "applied" : "failed"));
    return code;
  } catch (error) {
    if (change.outcome === "refused") lines.push(lineOf(manifest, change, "refused"));
    throw error;
  }
}

async function diff({ filename, output, ...flags }: Flags): Promise<void> {
  const planned: (readonly [Manifest, ManifestChange])[] = [];
  for (const manifest of await readManifestFiles(namedFiles(filename), shownTasks(output)))
    planned.push([manifest, await planManifest(manifest, { ...flags, result: output })]);
  const lines = planned.map(([manifest, change]) => lineOf(manifest, change, "pending"));
  printResult(lines, output, () => planned.map(([one, change]) => draw(one, change)).join(""));
  if (planned.some(([, { differences, outcome }]) => differences.length > 0 || outcome === "refused"))
    process.exitCode = exitCodes.failed;
}

function draw(manifest: Manifest, change: ManifestChange): string {
  const { outcome, differences, notes } = change;
  const title = `${manifestTitle(manifest)} ${outcome === "unchanged" ? outcome : `would be ${outcome}`}`;
  const lines = [title, ...differences.map(drawDifference), ...notes.map((note) => `  ${note}`)];
  return `${pictureOf(change)}${lines.map((line) => `${line}\n`).join("")}${refusalsOf(change)}`;
}

function pictureOf({ picture }: ManifestChange): string {
  if (!picture) return "";
  const { stdout, env } = process;
  const canvas = { columns: stdout.columns || 80, color: wantsColor(stdout), ascii: !detectTheme(env).unicode };
  return `${picture(canvas)}\n`;
}

function refusalsOf({ refusals = [] }: ManifestChange): string {
  return refusals.length === 0 ? "" : `${drawProblems(refusals, { color: wantsColor(process.stdout) })}\n`;
}

function lineOf(
  { kind, name }: Manifest,
  { outcome, differences, notes, data }: ManifestChange,
  phase: ManifestPhase,
): ResultLine {
  const reached = outcome === "refused" ? "refused" : outcome === "unchanged" ? "applied" : phase;
  return { kind, name, result: outcome, differences, notes, ...(data && { phase: reached, ...data }) };
}

function namedFiles(files: readonly string[] | undefined): readonly string[] {
  if (files !== undefined) return files;
  throw usageError("no file of manifests is named", "-f FILE, or -f - for stdin");
}

/** The change that applying a manifest would make now; only its `perform` changes roster, cluster or nodes. @throws KcoreError as the kind's planner */
export async function planManifest(manifest: Manifest, flags: ApplyFlags): Promise<ManifestChange> {
  switch (manifest.kind) {
    case "Cluster":
      return planCluster(manifest, flags);
    case "NodeInstall":
      return planNodeInstall(manifest, flags);
    case "Node":
      return planNode(manifest, flags);
    case "DiskLayout":
      return planDiskLayout(manifest, flags);
    case "ClusterUpdate":
      return planClusterUpdate(manifest, flags);
    case "Image":
    case "Network":
    case "VM":
      return planRecord(manifest, flags);
  }
}

/** `node/n1`, as results name a manifest. */
function manifestTitle({ kind, name }: Manifest): string {
  return `${kind.toLowerCase()}/${name}`;
}
