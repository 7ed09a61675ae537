import { formatDuration } from "#base/units.ts";
import { nodeTime, runTime, type NodeModel } from "#engine/events/run-model.ts";
import { usageError } from "#errors/problem.ts";
import { itemTitle } from "#tui/work-item.ts";
import { watchRun } from "../watch/watch-run.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { readRun, type KnownRun } from "../records/known-run.ts";
import { digestRecord, drawForOutput } from "../records/print-digest.ts";
import { printResult } from "../terminal/format-result.ts";
import { formatTable } from "../terminal/format-table.ts";

export interface ShowRunFlags extends CommonFlags {
  readonly output: "text" | "json";
  readonly events?: boolean;
  readonly html?: string;
  readonly node?: string;
  readonly times?: boolean;
}

/** The most rows of `--times` as text. */
const mostTimes = 20;

/** `kcore runs show`: prints a run's digest, all events, the steps of a node, or the times of steps; with `--html` writes its report instead. */
export async function showRun(id: string, flags: ShowRunFlags): Promise<void> {
  const { project, output, events = false, html, node: name, times = false } = flags;
  const root = findProject(project);
  const run = await readRun(root, id);
  if (html !== undefined) {
    const { writeReports } = await import("../records/export.ts");
    return writeReports([html], run.folder);
  }
  if (events) {
    await watchRun({ folder: run.folder, output: output === "json" ? "json" : "plain", replayOnly: true });
    return;
  }
  const node = name === undefined ? undefined : nodeIn(run, name);
  if (times) return showTimes(run, node, output);
  if (node) return showNode(run, node, output);
  const digest = await digestRecord(run);
  if (output === "json") {
    printResult(digest, "json");
    return;
  }
  process.stdout.write(await drawForOutput(digest, root));
}

function nodeIn({ folder, model: { nodes } }: KnownRun, name: string): NodeModel {
  const node = nodes.get(name);
  if (node) return node;
  throw usageError(`run ${folder.id} has no node “${name}”`, `it has: ${[...nodes.keys()].join(", ") || "none"}`);
}

async function showNode({ folder: { id }, model }: KnownRun, node: NodeModel, output: "text" | "json"): Promise<void> {
  const { drawNodeSteps, stepsOfNode } = await import("#tui/node-steps.ts");
  const steps = stepsOfNode(model, node);
  const { name, outcome = "not finished" } = node;
  const head = `${name}  ${outcome} after ${formatDuration(nodeTime(node, model.lastAt) ?? 0)}  (run ${id}: ${model.title})`;
  printResult({ id, node: name, outcome, steps }, output, () => `${head}\n\n${drawNodeSteps(steps)}`);
}

async function showTimes(run: KnownRun, node: NodeModel | undefined, output: "text" | "json"): Promise<void> {
  const { stepTimes } = await import("#tui/node-steps.ts");
  const { id } = run.folder;
  const milliseconds = runTime(run.model);
  const steps = stepTimes(run.model, node);
  const all = formatDuration(steps.reduce((sum, { total }) => sum + total, 0));
  const rows = steps
    .slice(0, mostTimes)
    .map(({ module, nodes, total, share, longest, longestOn, ...step }) => [
      itemTitle(step),
      module,
      String(nodes),
      formatDuration(total),
      `${(share * 100).toFixed(0)}%`,
      `${formatDuration(longest)} on ${longestOn}`,
    ]);
  const head = `run ${id} took ${formatDuration(milliseconds)}; its steps took ${all} on ${node?.name ?? "all nodes together"}`;
  const table = formatTable(["STEP", "MODULE", "NODES", "TIME", "SHARE", "LONGEST"], rows);
  printResult({ id, milliseconds, steps }, output, () => `${head}\n\n${table}`);
}
