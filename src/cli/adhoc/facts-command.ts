import { Command, Option } from "commander";
import { readFacts } from "#engine/facts/node-files.ts";
import { factCatalogue } from "#engine/facts/catalogue.ts";
import { isFactPath } from "#engine/facts/paths.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { exitCodes, KcoreError, type Problem, usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { findProject } from "../project/find-project.ts";
import { ownRoster } from "../roster/own-roster.ts";
import { addRunOptions } from "../watch/run-options.ts";
import { requestOf, requireTarget, type RunFlags } from "../watch/run-request.ts";
import { printJson } from "../terminal/print-json.ts";
import { drawDifferences, drawFacts, drawPaths, differingFacts, valuesAt, type FactsAnswer } from "./draw-facts.ts";
import { runHere } from "../watch/run-here.ts";
import { tellWait } from "../watch/step-results.ts";

interface FactsFlags extends RunFlags {
  readonly output: "table" | "json";
  readonly diff?: boolean;
  readonly kept?: boolean;
}

/** `kcore facts [TARGET] [PATH…]`. */
export function factsCommand(): Command {
  const command = new Command("facts")
    .description("Gather facts about nodes: the values that expressions see under facts")
    .argument("[target]", "nodes, as --on selects them; with --on, the first path")
    .argument("[path...]", "only these: os.id, memory, disks.0.bytes (docs/facts.md lists them)");
  addRunOptions(command, { full: false })
    .option("--diff", "only the facts that differ between nodes; each word that is no path is a target")
    .option("--kept", "the facts that were kept last, without connecting")
    .addOption(new Option("-o, --output <format>", "how to print").choices(["table", "json"]).default("table"))
    .addHelpText(
      "after",
      `
Examples:
  kcore facts n1
  kcore facts '*' os.id os.version kernel.release
  kcore facts --diff n1 n2
  kcore facts --kept 'role:worker' memory.totalKiB
  kcore facts --on '*' -o json | jq '.[].os'

The answers are kept in .kcore/facts, for targets such as --on 'fact:os.id=debian'.`,
    )
    .action(printFacts);
  return command;
}

async function printFacts(target: string | undefined, words: readonly string[], flags: FactsFlags): Promise<void> {
  const { on, paths } = nodesAndPaths(target, words, flags);
  refuseUnknown(paths);
  const targeted = { ...flags, on };
  requireTarget(targeted, "facts");
  const nodes = flags.kept ? readKept(targeted) : await gather(targeted);
  process.stdout.write(flags.diff ? drawDifferingFacts(nodes, paths, flags) : drawAll(nodes, paths, flags));
}

/** Without `--on` the first word is the target; with `--diff`, so is each later word that is no fact's path. */
export function nodesAndPaths(
  target: string | undefined,
  words: readonly string[],
  { on = [], diff = false }: Pick<FactsFlags, "on" | "diff">,
): { readonly on: readonly string[]; readonly paths: readonly string[] } {
  const given = target === undefined ? [] : [target, ...words];
  if (on.length > 0) return { on, paths: given };
  const isTarget = (word: string, index: number): boolean => index === 0 || (diff && !isFactPath(word));
  return { on: given.filter(isTarget), paths: given.filter((word, index) => !isTarget(word, index)) };
}

function refuseUnknown(paths: readonly string[]): void {
  const names = factCatalogue.map(({ name }) => name);
  const unknown = paths.filter((path) => !isFactPath(path));
  if (unknown.length === 0) return;
  throw new KcoreError(
    unknown.map((path) => ({
      code: "USAGE" as const,
      message: `no fact “${path}”`,
      hint: suggestHint(path, names, "docs/facts.md lists them"),
    })),
  );
}

/** Sets the exit code of the process, as some nodes may have failed. */
async function gather(flags: FactsFlags): Promise<readonly FactsAnswer[]> {
  const { exitCode, model } = await runHere(flags, requestOf(flags, { kind: "facts" }), tellWait);
  process.exitCode = exitCode;
  return [...model.nodes.values()].map(({ name, outcome = "interrupted", facts = {}, problem }) =>
    outcome === "done" ? { node: name, facts } : { node: name, outcome, ...(problem ? { problem } : {}) },
  );
}

function readKept({ project, on = [], ...flags }: FactsFlags): readonly FactsAnswer[] {
  const root = findProject(project);
  const now = Date.now();
  return matchTargets(on, ownRoster(root)).map(({ name }) => {
    const kept = readFacts(root, name);
    if (kept !== undefined && (flags.factsAge === undefined || now - kept.gathered <= flags.factsAge))
      return { node: name, facts: kept.facts, gathered: kept.gathered };
    process.exitCode = exitCodes.failed;
    const problem: Problem = {
      code: "TARGET_FACTS_UNKNOWN",
      message: kept ? "its facts are older than --facts-age allows" : "its facts were never gathered",
      hint: `kcore facts ${name}`,
    };
    return { node: name, outcome: "failed", problem };
  });
}

function drawAll(nodes: readonly FactsAnswer[], paths: readonly string[], { output }: FactsFlags): string {
  if (output === "table") return paths.length > 0 ? drawPaths(nodes, paths) : drawFacts(nodes, Date.now());
  const shown = nodes.map(({ node, facts, outcome, problem }) => [
    node,
    facts === undefined
      ? { outcome, ...(problem ? { problem } : {}) }
      : paths.length > 0
        ? valuesAt(facts, paths)
        : facts,
  ]);
  return `${printJson(Object.fromEntries(shown), 2)}\n`;
}

/** The facts that differ; stderr names the nodes without facts. @throws KcoreError USAGE for fewer than two nodes */
function drawDifferingFacts(nodes: readonly FactsAnswer[], paths: readonly string[], { output }: FactsFlags): string {
  if (nodes.length < 2) throw usageError("--diff needs at least two nodes", "kcore facts --diff n1 n2");
  const known = nodes.filter(({ facts }) => facts !== undefined);
  for (const { node, outcome, problem } of nodes)
    if (outcome !== undefined) process.stderr.write(`${node}  ${problem?.message ?? outcome}\n`);
  const differences = differingFacts(known, paths);
  if (output === "json") return `${printJson(differences, 2)}\n`;
  return drawDifferences(
    known.map(({ node }) => node),
    differences,
  );
}
