import { drawProblem, drawProblems, type DrawOptions } from "#errors/draw.ts";
import type { Problem } from "#errors/problem.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { ActionModel, NodeModel, RunModel, StepModel } from "#engine/events/run-model.ts";
import { formatDuration } from "./line.ts";
import { endOfDetail } from "./end-of-detail.ts";
import { bastionActions, tallyOf, workOf, type Tally } from "./tally.ts";

/** Lines of what a failed step printed; its node's log has all. */
const LINES = 10;

export interface SummaryOptions extends DrawOptions {
  /** Where a node's log lies, or the bastion's, to be shown. */
  readonly logOf: (node?: string) => string;
}

/** The end of a run: each node on a line, the total as Salt tells it, the first cause of each failure, what to do next. */
export function drawSummary(model: RunModel, options: SummaryOptions): string {
  if (model.runId === "") return drawProblems(model.problems, options);
  const parts = [
    ...nodeLines(model),
    "",
    ...totalLines(model),
    ...causes(model, options),
    ...ownProblems(model).flatMap((problem) => ["", drawProblem(problem, options)]),
    ...nextSteps(model),
  ];
  return parts.join("\n");
}

function nodeLines(model: RunModel): readonly string[] {
  const blocks: (readonly [string, Tally, string])[] = [...model.nodes.values()].map((node) => [
    node.name,
    tallyOf(workOf(model, node.name)),
    stateOf(node),
  ]);
  const bastion = bastionActions(model);
  if (bastion.length > 0) blocks.push(["bastion", tallyOf(bastion), ""]);
  const width = Math.max(...blocks.map(([name]) => name.length), 0);
  return blocks.map(([name, tally, state]) => `${name.padEnd(width)}  ${oneLine(tally, model.dryRun)}${state}`);
}

function stateOf({ outcome }: NodeModel): string {
  return outcome === undefined || outcome === "done" || outcome === "failed" ? "" : `   ${outcome.replace("-", " ")}`;
}

function oneLine(tally: Tally, dryRun: boolean): string {
  const rest = others(tally).map(([name, count]) => `   ${name}: ${count}`);
  return `Succeeded: ${tally.succeeded} ${changes(tally, dryRun)}   Failed: ${tally.failed}${rest.join("")}   Total steps run: ${tally.run}   Total run time: ${formatDuration(tally.time)}`;
}

function changes({ changed, wouldChange }: Tally, dryRun: boolean): string {
  return dryRun ? `(would change=${wouldChange})` : `(changed=${changed})`;
}

function others({ skipped, unknown, interrupted }: Tally): readonly (readonly [string, number])[] {
  const all = [
    ["Unknown", unknown],
    ["Interrupted", interrupted],
    ["Skipped", skipped],
  ] as const;
  return all.filter(([, count]) => count > 0);
}

function totalLines(model: RunModel): readonly string[] {
  const all = [...[...model.nodes.keys()].flatMap((node) => workOf(model, node)), ...bastionActions(model)];
  const tally = tallyOf(all);
  const rule = "-".repeat(32);
  const row = (name: string, value: string) => `${`${name}:`.padEnd(17)}${value}`;
  return [
    `Summary of run ${model.runId}${model.dryRun ? " (dry run: nothing was changed)" : ""}`,
    rule,
    row("Succeeded", `${tally.succeeded} ${changes(tally, model.dryRun)}`),
    row("Failed", String(tally.failed)),
    ...others(tally).map(([name, count]) => row(name, String(count))),
    rule,
    row("Total steps run", String(tally.run)),
    row("Total run time", formatDuration(Math.max(0, model.lastAt - model.startedAt))),
    ...(tally.unknown > 0 ? ["Unknown steps rest on values that only the applied steps before them give."] : []),
  ];
}

/** For each node what stopped it, not what followed from that. */
function causes(model: RunModel, options: SummaryOptions): readonly string[] {
  const failed = [
    ...[...model.nodes.values()].flatMap((node) => causeOf(model, node, options)),
    ...bastionActions(model)
      .filter(({ outcome }) => outcome === "failed")
      .flatMap((action) => [drawAction("bastion", action, options), `  log: ${options.logOf()}`]),
  ];
  if (failed.length === 0) return [];
  return ["", "The first cause of each failure:", ...failed];
}

function causeOf(model: RunModel, node: NodeModel, options: SummaryOptions): readonly string[] {
  if (node.outcome === "done" || node.outcome === "not-started") return [];
  const step = node.steps.find(({ outcome }) => outcome === "failed");
  const log = `  log: ${options.logOf(node.name)}`;
  if (step)
    return [
      `${node.name}  ${step.title}  (${step.module})`,
      ...drawCause(endOfDetail(placedProblem(step, `${step.title} failed without saying why`), LINES), options),
      ...tailOf(step),
      log,
    ];
  const action = model.stages
    .flatMap(({ actions }) => actions)
    .find(({ item, outcome }) => item === node.name && outcome === "failed");
  if (action) return [drawAction(node.name, action, options), log];
  return node.problem ? [node.name, ...drawCause(endOfDetail(node.problem, LINES), options), log] : [];
}

/** Problems of the run itself, without those that a node, a step or an action has told already. */
export function ownProblems(model: RunModel): readonly Problem[] {
  const nodes = [...model.nodes.values()];
  const told = [...nodes, ...nodes.flatMap(({ steps }) => steps), ...model.stages.flatMap(({ actions }) => actions)];
  return model.problems.filter(
    ({ code, message }) => !told.some(({ problem }) => problem?.code === code && problem.message === message),
  );
}

function placedProblem({ problem, position }: Pick<StepModel, "problem" | "position">, otherwise: string): Problem {
  const found: Problem = problem ?? { code: "INTERNAL", message: otherwise };
  return found.at === undefined && position !== undefined ? { ...found, at: position } : found;
}

/** The last lines that the step printed, unless its problem tells them already. */
function tailOf({ tail, problem }: Pick<StepModel, "tail" | "problem">): readonly string[] {
  const text = cleanText(tail).trimEnd();
  if (text === "" || problem?.detail) return [];
  return text
    .split("\n")
    .slice(-LINES)
    .map((line) => `  | ${line}`);
}

function drawAction(who: string, work: ActionModel, options: SummaryOptions): string {
  const { stage, action, reason } = work;
  const found = placedProblem(work, reason ?? `${action} failed without saying why`);
  return [`${who}  ${stage}: ${action}`, ...drawCause(endOfDetail(found, LINES), options), ...tailOf(work)].join("\n");
}

function drawCause(problem: Problem, options: SummaryOptions): readonly string[] {
  return drawProblem(problem, options)
    .split("\n")
    .map((line) => `  ${line}`);
}

function nextSteps(model: RunModel): readonly string[] {
  if (model.exitCode === 0 || model.dryRun) return [];
  if (model.state !== "finished") return ["", "the run is not finished: kcore runs resume " + model.runId];
  return ["", `to go on where it stopped: kcore runs resume ${model.runId}`];
}
