import type { LeftOut, Outcome } from "#engine/events/event.ts";
import { runTime, type NodeModel, type RunModel } from "#engine/events/run-model.ts";
import type { SourcePosition } from "#errors/problem.ts";
import { cleanText } from "#engine/events/clean.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { openQuestion, type OpenQuestion } from "./questions.ts";
import { failuresOf, type RunFailure } from "./failures.ts";
import { planOf, type DryRunPlan } from "./dry-run-plan.ts";
import { repeatCommand } from "./repeat-command.ts";
import { tallyOfNode, tallyOfRun, type Tally } from "./tally.ts";
import { groupAlike, itemsByNode, itemNames } from "./work-item.ts";

/** The facts of a run's record besides its events. */
export interface DigestFacts {
  readonly id: string;
  /** `done`, `failed`, `died` …, as `kcore runs list` shows it. */
  readonly state: string;
  readonly who: string;
  readonly command: string;
  /** Milliseconds since the epoch. */
  readonly created: number;
  readonly revision?: string;
  readonly dirty?: boolean;
  /** The path of a node's log, or without a name of the bastion's; undefined without a log. */
  readonly logOf: (node?: string) => string | undefined;
}

/** A run in short, as plain JSON: operator, time, command, changes, failures, and the next commands. */
export interface RunDigest {
  readonly id: string;
  readonly title: string;
  readonly state: string;
  readonly exitCode?: number;
  readonly who: string;
  readonly command: string;
  /** ISO 8601. */
  readonly started: string;
  readonly milliseconds: number;
  readonly revision?: string;
  readonly dirty: boolean;
  readonly dryRun: boolean;
  readonly resumed: boolean;
  readonly leftOut?: LeftOut;
  readonly tally: Tally;
  readonly nodes: readonly NodeDigest[];
  /** The questions that the run waits for. */
  readonly questions: readonly OpenQuestion[];
  readonly changes: readonly ChangeDigest[];
  /** In a dry run: each step that would change, with its diff, and each step whose outcome is unknown. */
  readonly foresight?: DryRunPlan;
  readonly failures: readonly FailureDigest[];
  readonly warnings: readonly { readonly node?: string; readonly text: string }[];
  readonly next: readonly NextCommand[];
}

export interface NodeDigest extends Tally {
  readonly name: string;
  /** The route to the node: user, address, port, jump hosts. */
  readonly place?: string;
  readonly outcome: string;
  readonly log?: string;
}

/** A step that changed something, or would, and its nodes. */
export interface ChangeDigest {
  readonly stage: string;
  readonly title: string;
  readonly module: string;
  readonly outcome: Outcome;
  readonly nodes: readonly string[];
}

export interface FailureDigest extends Omit<RunFailure, "item"> {
  /** The place of the step: file, line, column. */
  readonly at?: SourcePosition;
  /** The last lines that the step printed. */
  readonly output: readonly string[];
  readonly log?: string;
  /** The command that tries the step again on these nodes; absent for the bastion and for more than ten nodes. */
  readonly repeat?: string;
}

export interface NextCommand {
  readonly command: string;
  readonly why: string;
}

/** Most lines of a failed step's output. */
const mostLines = 20;
/** Most nodes that a command names one by one. */
const mostNamed = 10;

/** The digest of a run from its events' model and its record. Pure. */
export function digestRun(model: RunModel, facts: DigestFacts): RunDigest {
  const { id, state, who, command, created, logOf, revision = model.revision, dirty = model.dirty } = facts;
  const { exitCode, title, dryRun, resumed, leftOut, warnings } = model;
  const failures = failuresOf(model).map((failure) => digestFailure(model, failure, logOf));
  return {
    id,
    title: title === "" ? command : title,
    state,
    ...omitUndefined({ exitCode }),
    who,
    command,
    started: new Date(model.startedAt || created).toISOString(),
    milliseconds: runTime(model),
    ...omitUndefined({ revision }),
    dirty,
    dryRun,
    resumed,
    ...omitUndefined({ leftOut }),
    tally: tallyOfRun(model),
    nodes: [...model.nodes.values()].map((node) => ({
      name: node.name,
      ...omitUndefined({ place: node.place }),
      outcome: node.outcome ?? unfinishedOutcome(model, node, state),
      ...tallyOfNode(model, node),
      ...omitUndefined({ log: logOf(node.name) }),
    })),
    questions: isOver(state) ? [] : model.questions.map((question) => openQuestion(question, id)),
    changes: changeDigests(model),
    ...(dryRun && { foresight: planOf(model) }),
    failures,
    warnings,
    next: nextCommands(facts, model, failures),
  };
}

function isOver(state: string): boolean {
  return !["starting", "running", "waiting", "stopping"].includes(state);
}

/** The outcome to show for a node without one. */
function unfinishedOutcome({ questions }: RunModel, { name, startedAt }: NodeModel, state: string): string {
  if (isOver(state)) return "not finished";
  if (questions.some(({ node }) => node === name)) return "waiting for you";
  return startedAt === undefined ? "waiting" : "running";
}

function changeDigests(model: RunModel): readonly ChangeDigest[] {
  return groupAlike(itemsByNode(model), (item) => {
    const { outcome } = item;
    return outcome === "changed" || outcome === "would-change" ? { ...itemNames(item), outcome } : undefined;
  });
}

function digestFailure(model: RunModel, { item, ...failure }: RunFailure, logOf: DigestFacts["logOf"]): FailureDigest {
  const { nodes, problem } = failure;
  const [first] = nodes;
  const node = first !== undefined && model.nodes.has(first) ? first : undefined;
  const printed = item?.tail ? item.tail : (item?.note ?? "");
  const text = cleanText(printed).trimEnd();
  const repeat =
    node !== undefined && nodes.length <= mostNamed ? repeatCommand(model.command, nodes.join(",")) : undefined;
  return {
    ...failure,
    output: text === "" ? [] : text.split("\n").slice(-mostLines),
    ...omitUndefined({ at: item && problem.at, log: first === undefined ? undefined : logOf(node), repeat }),
  };
}

function nextCommands(
  { id, state, command }: DigestFacts,
  model: RunModel,
  failures: readonly FailureDigest[],
): readonly NextCommand[] {
  const { dryRun, runId } = model;
  if (!isOver(state))
    return [{ command: `kcore runs attach ${id}`, why: state === "waiting" ? "answer it" : "watch it" }];
  const { wouldChange, unknown } = tallyOfRun(model);
  if (state === "done")
    return dryRun && wouldChange + unknown > 0
      ? [{ command: command.replaceAll(/ --(dry-run|fail-on-change)(?= |$)/g, ""), why: "do it" }]
      : [];
  if (runId === "") return [{ command, why: "try again, when that is mended" }];
  const replay = { command: `kcore runs replay ${id}`, why: "see how it came" };
  const repeat = failures[0]?.repeat;
  if (dryRun) return [{ command: repeat ?? command, why: "try again, when that is mended" }, replay];
  const resume = {
    command: `kcore runs resume ${id}`,
    why: "go on where it stopped; finished steps are not run again",
  };
  // A run is resumed as it was planned; a mistake in the project needs a new run.
  if (state !== "failed") return [resume, replay];
  return [
    { command, why: "when the project is mended" },
    { ...resume, why: "when a node is mended: go on where it stopped" },
    replay,
  ];
}
