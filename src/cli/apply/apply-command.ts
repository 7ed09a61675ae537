import { Command } from "commander";
import { KcoreError } from "#errors/problem.ts";
import { drawDifference, type Change } from "./change.ts";
import { planManifest, readFiles, titleOf, type ApplyFlags } from "./plan-manifest.ts";
import { formatResult } from "../terminal/format-result.ts";
import type { Manifest } from "../manifests/read-manifests.ts";
import { addClusterOptions, addResultOption, collect } from "../options.ts";

interface Flags extends Omit<ApplyFlags, "output"> {
  readonly filename?: readonly string[];
  readonly dryRun?: boolean;
  readonly output: "table" | "json" | "yaml";
}

const kinds = `
Kinds: Cluster (a context with its CA), NodeInstall (what kcore node install is told), Node (a roster entry, and what the
cluster expects of the node). Keys in camelCase or snake_case; several documents are separated by ---.`;

/** `kcore apply -f FILE`. */
export function applyCommand(): Command {
  return withFiles(new Command("apply"))
    .description("Make it so, as manifests say: created, updated or unchanged")
    .option("--dry-run", "only say what would be done")
    .option("--skip-health", "for NodeInstall: do not look at the cluster's health first; this is recorded")
    .option("--yes", "answer every confirmation with yes")
    .option("--passphrase-file <file>", "for the CA's keys; else KCORE_CA_PASSPHRASE, else it is asked")
    .addHelpText(
      "after",
      `
Examples:
  kcore apply -f nodes.yaml
  kcore apply -f cluster.yaml -f nodes.yaml --dry-run
  generate-nodes | kcore apply -f -
${kinds}`,
    )
    .action(apply);
}

/** `kcore diff -f FILE`. */
export function diffCommand(): Command {
  return withFiles(new Command("diff"))
    .description("Tell what kcore apply would change; exits 1 if that is anything")
    .addHelpText("after", `\nExamples:\n  kcore diff -f nodes.yaml\n${kinds}`)
    .action(diff);
}

function withFiles(command: Command): Command {
  return addResultOption(addClusterOptions(command), ["table", "json", "yaml"]).option(
    "-f, --filename <file>",
    "a file of manifests, or - for what comes in (repeatable)",
    collect,
  );
}

/** A result as `-o json` prints it. */
interface Line {
  readonly kind: Manifest["kind"];
  readonly name: string;
  readonly result: Change["outcome"];
  readonly differences: Change["differences"];
  readonly notes: Change["notes"];
}

async function apply({ filename, dryRun = false, output, ...flags }: Flags): Promise<void> {
  const manifests = await readFiles(named(filename));
  const lines: Line[] = [];
  try {
    for (const manifest of manifests) {
      // One after the other: a Node may need the Cluster before it.
      const change = await planManifest(manifest, flags);
      const code = dryRun || change.outcome === "unchanged" ? 0 : await change.perform();
      lines.push(lineOf(manifest, change));
      if (output === "table") {
        const what = code === 0 ? change.outcome : "failed";
        process.stdout.write(`${titleOf(manifest)} ${what}${dryRun ? " (dry run)" : ""}\n`);
        for (const note of change.notes) process.stdout.write(`  ${note}\n`);
      }
      if (code === 0) continue;
      process.exitCode = code;
      break;
    }
  } finally {
    if (output !== "table") process.stdout.write(formatResult(lines, output, () => ""));
  }
}

async function diff({ filename, output, ...flags }: Flags): Promise<void> {
  const lines: Line[] = [];
  for (const manifest of await readFiles(named(filename)))
    lines.push(lineOf(manifest, await planManifest(manifest, flags)));
  process.stdout.write(formatResult(lines, output, () => lines.map(draw).join("")));
  if (lines.some(({ differences }) => differences.length > 0)) process.exitCode = 1;
}

function draw({ kind, name, result, differences, notes }: Line): string {
  const title = `${kind.toLowerCase()}/${name} ${result === "unchanged" ? result : `would be ${result}`}`;
  return [title, ...differences.map(drawDifference), ...notes.map((note) => `  ${note}`)]
    .map((line) => `${line}\n`)
    .join("");
}

function lineOf({ kind, name }: Manifest, { outcome, differences, notes }: Change): Line {
  return { kind, name, result: outcome, differences, notes };
}

function named(files: readonly string[] | undefined): readonly string[] {
  if (files !== undefined) return files;
  throw new KcoreError({
    code: "USAGE",
    message: "no file of manifests is named",
    hint: "-f FILE, or -f - for what comes in",
  });
}
