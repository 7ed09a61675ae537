import { formatDuration } from "#base/units.ts";
import { runTime } from "#engine/events/run-model.ts";
import { diffRuns, type RunDifference, type StepDifference, type StepSide } from "#tui/diff-runs.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { formatTable } from "../terminal/format-table.ts";
import { readRun, runState, type KnownRun } from "../records/known-run.ts";
import { printResult } from "../terminal/format-result.ts";

/** `kcore runs diff A B`: prints how two runs differ in outcome, changes and time, node by node and step by step. */
export async function diffTwoRuns(
  a: string,
  b: string,
  { project, output }: CommonFlags & { readonly output: "table" | "json" },
): Promise<void> {
  const root = findProject(project);
  const [one, other] = [await readRun(root, a), await readRun(root, b)];
  const found = diffRuns(one.model, other.model);
  printResult({ a: sideOf(one), b: sideOf(other), ...found }, output, () => draw(one, other, found));
}

function sideOf(run: KnownRun) {
  const { folder, header, model } = run;
  return {
    id: folder.id,
    state: runState(run),
    title: model.title,
    command: header.request.command,
    who: header.who,
    revision: header.revision,
    dirty: header.dirty,
    milliseconds: runTime(model),
  };
}

function draw(one: KnownRun, other: KnownRun, { nodes, steps }: RunDifference): string {
  const parts = [formatTable(["", "A", "B"], heads(one, other))];
  if (nodes.length > 0)
    parts.push(
      formatTable(
        ["NODE", "A", "B"],
        nodes.map(({ node, a = "–", b = "–" }) => [node, a, b]),
      ),
    );
  if (steps.length > 0) parts.push(formatTable(["STEP", "WHAT", "A → B", "NODES"], stepRows(steps)));
  if (nodes.length + steps.length === 0) parts.push("no node and no step differs\n");
  return parts.join("\n");
}

function heads(one: KnownRun, other: KnownRun): readonly (readonly string[])[] {
  const [a, b] = [sideOf(one), sideOf(other)];
  const at = ({ revision, dirty }: typeof a) =>
    revision === undefined ? "–" : `${revision.slice(0, 12)}${dirty ? " +changes" : ""}`;
  return [
    ["run", a.id, b.id],
    ["state", a.state, b.state],
    ["time", formatDuration(a.milliseconds), formatDuration(b.milliseconds)],
    ["revision", at(a), at(b)],
    ["by", a.who, b.who],
    ["command", a.command, b.command],
  ];
}

/** The rows of steps; a difference that several nodes share is one row. */
function stepRows(steps: readonly StepDifference[]): readonly (readonly string[])[] {
  const rows = new Map<string, { readonly row: readonly string[]; readonly nodes: string[] }>();
  for (const step of steps) {
    const row = [`${step.stage}: ${step.title}`, step.what, sides(step)];
    // Times differ a little from node to node, so rows are the same without regard to times.
    const key = JSON.stringify(step.what === "slower" || step.what === "faster" ? row.slice(0, 2) : row);
    const known = rows.get(key);
    if (known) known.nodes.push(step.node);
    else rows.set(key, { row, nodes: [step.node] });
  }
  return [...rows.values()].map(({ row, nodes }) => [...row, abbreviateNodes(nodes)]);
}

function abbreviateNodes(nodes: readonly string[]): string {
  return nodes.length > 6 ? `${nodes.slice(0, 6).join(", ")} and ${nodes.length - 6} more` : nodes.join(", ");
}

function sides({ what, a, b }: StepDifference): string {
  if (what === "slower" || what === "faster") return `${took(a)} → ${took(b)}`;
  if (what === "changes") return `${changed(a)} → ${changed(b)}`;
  return `${a?.outcome ?? "–"} → ${b?.outcome ?? "–"}`;
}

function took(side: StepSide | undefined): string {
  return side?.duration === undefined ? "–" : formatDuration(side.duration);
}

function changed(side: StepSide | undefined): string {
  return side?.changes.map(({ name }) => name).join(" ") || "–";
}
