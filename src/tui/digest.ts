import type { Outcome } from "#engine/events/event.ts";
import { runTime, type NodeModel, type RunModel } from "#engine/events/run-model.ts";
import type { Problem, SourcePosition } from "#errors/problem.ts";
import { cleanText } from "#engine/events/clean.ts";
import { defined } from "#optional/defined.ts";
import { askedOf, type Asked } from "./asked.ts";
import { causeFirst } from "./cause-line.ts";
import { foresee, type Foresight } from "./foreseen.ts";
import { repeatCommand } from "./repeat-command.ts";
import { ownProblems } from "./own-problems.ts";
import { bastionActions, tallyOfNode, tallyOfRun, type Tally } from "./tally.ts";
import { withoutWave } from "./wave.ts";
import { actionsByNode, causeIn, itemsOf, itemOfAction, type WorkItem } from "./work-item.ts";

/** What stands in the record beside the events. */
export interface DigestFacts {
  readonly id: string;
  /** `done`, `failed`, `died` …, as `runs list` has it. */
  readonly state: string;
  readonly who: string;
  readonly command: string;
  /** Milliseconds since the epoch. */
  readonly created: number;
  readonly revision?: string;
  readonly dirty?: boolean;
  /** The log of a node, or of the bastion, if there is one. */
  readonly logOf: (node?: string) => string | undefined;
}

/** A run in short, as plain JSON: who, when, what, what changed where, what went wrong, and what to do next. */
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
  readonly tally: Tally;
  readonly nodes: readonly NodeDigest[];
  /** The questions that the run waits for. */
  readonly questions: readonly Asked[];
  readonly changes: readonly ChangeDigest[];
  /** In a dry run: each step that would change, with its diff, and each step whose outcome is unknown. */
  readonly foresight?: Foresight;
  readonly failures: readonly FailureDigest[];
  readonly warnings: readonly { readonly node?: string; readonly text: string }[];
  readonly next: readonly NextCommand[];
}

export interface NodeDigest extends Tally {
  readonly name: string;
  /** The way to it: user, address, port, jump hosts. */
  readonly place?: string;
  readonly outcome: string;
  readonly log?: string;
}

/** A step that changed something, or would, and where. */
export interface ChangeDigest {
  readonly stage: string;
  readonly title: string;
  readonly module: string;
  readonly outcome: Outcome;
  readonly nodes: readonly string[];
}

/** What stopped one or more nodes: the same step with the same problem. Told as the first of the nodes tells it. */
export interface FailureDigest {
  /** Empty when the run itself failed. */
  readonly nodes: readonly string[];
  readonly stage?: string;
  readonly title: string;
  readonly module?: string;
  readonly problem: Problem;
  /** Why, in one line: “no space left on device (exit 28)”. */
  readonly cause: string;
  /** Where the step stands: file, line, column. */
  readonly at?: SourcePosition;
  /** The last lines that the step printed. */
  readonly output: readonly string[];
  readonly log?: string;
  /** The command that tries it again on these nodes; none where they are too many to be named. */
  readonly repeat?: string;
}

export interface NextCommand {
  readonly command: string;
  readonly why: string;
}

/** Lines of output that are told. */
const LINES = 20;
/** Nodes that a command names one by one. */
const NAMED = 10;

/** A run in short. Pure. */
export function digestRun(model: RunModel, facts: DigestFacts): RunDigest {
  const { id, state, who, command, created, logOf, revision = model.revision, dirty = model.dirty } = facts;
  const actions = actionsByNode(model);
  const lanes = [...model.nodes.values()].map((node) => ({ node, items: itemsOf(node, actions.get(node.name) ?? []) }));
  const own = bastionActions(model).map(itemOfAction);
  const { exitCode, title, dryRun, resumed, warnings, partAt } = model;
  const failures = [
    ...group(lanes.flatMap(({ node, items }) => causeOf(node, items, facts, partAt))).map((failure) => ({
      ...failure,
      ...(failure.nodes.length <= NAMED && { repeat: repeatCommand(model.command, failure.nodes.join(",")) }),
    })),
    ...own
      .filter(({ outcome, startedAt }) => outcome === "failed" && startedAt >= partAt)
      .map((item) => ({ ...failureOf(item, "bastion"), ...defined({ log: logOf() }) })),
    ...ownProblems(model).map((problem) => ({
      nodes: [],
      title: "the run itself",
      problem,
      cause: problem.message,
      output: [],
    })),
  ];
  return {
    id,
    title: title === "" ? command : title,
    state,
    ...defined({ exitCode }),
    who,
    command,
    started: new Date(model.startedAt || created).toISOString(),
    milliseconds: runTime(model),
    ...defined({ revision }),
    dirty,
    dryRun,
    resumed,
    tally: tallyOfRun(model),
    nodes: lanes.map(({ node }) => ({
      name: node.name,
      ...defined({ place: node.place }),
      outcome: node.outcome ?? openState(model, node, state),
      ...tallyOfNode(model, node),
      ...defined({ log: logOf(node.name) }),
    })),
    questions: isOver(state) ? [] : model.questions.map((question) => askedOf(question, id)),
    changes: changesOf(lanes, own),
    ...(dryRun && { foresight: foresee(model) }),
    failures,
    warnings,
    next: nextOf(facts, model, failures),
  };
}

function isOver(state: string): boolean {
  return !["starting", "running", "waiting", "stopping"].includes(state);
}

/** The state of a node that has not ended. */
function openState({ questions }: RunModel, { name, startedAt }: NodeModel, state: string): string {
  if (isOver(state)) return "not finished";
  if (questions.some(({ node }) => node === name)) return "waiting for you";
  return startedAt === undefined ? "waiting" : "running";
}

interface Lane {
  readonly node: NodeModel;
  readonly items: readonly WorkItem[];
}

function changesOf(lanes: readonly Lane[], own: readonly WorkItem[]): readonly ChangeDigest[] {
  const found = new Map<string, ChangeDigest & { readonly nodes: string[] }>();
  const add = (name: string, item: WorkItem) => {
    const { module, outcome } = item;
    if (outcome !== "changed" && outcome !== "would-change") return;
    const { stage, title } = nameOf(item);
    const key = JSON.stringify([stage, title, module, outcome]);
    const known = found.get(key);
    if (known) known.nodes.push(name);
    else found.set(key, { stage, title, module, outcome, nodes: [name] });
  };
  for (const { node, items } of lanes) for (const item of items) add(node.name, item);
  for (const item of own) add("bastion", item);
  return [...found.values()];
}

/** The same step in another wave is the same step; an action is called as its stage is. */
function nameOf({ stage: id, title }: Pick<WorkItem, "stage" | "title">): {
  readonly stage: string;
  readonly title: string;
} {
  const stage = withoutWave(id);
  return { stage, title: title === id ? stage : title };
}

/** The failure that stopped a node, without its consequences; in a run resumed at `partAt`, a failure since then comes first. */
function causeOf(
  node: NodeModel,
  items: readonly WorkItem[],
  { logOf }: DigestFacts,
  partAt: number,
): readonly FailureDigest[] {
  const { name, outcome, problem } = node;
  if (outcome === "done" || outcome === "not-started") return [];
  const more = defined({ log: logOf(name) });
  const item = causeIn(items.filter(({ startedAt }) => startedAt >= partAt)) ?? (problem ? undefined : causeIn(items));
  if (item) return [{ ...failureOf(item, name), ...more }];
  return problem
    ? [{ nodes: [name], title: outcome ?? "not finished", problem, cause: problem.message, output: [], ...more }]
    : [];
}

function failureOf(item: WorkItem, node: string): FailureDigest {
  const { module, problem, position, tail, note } = item;
  const { stage, title } = nameOf(item);
  const found: Problem = problem ?? { code: "INTERNAL", message: `${title} failed without saying why` };
  const at = found.at ?? position;
  const text = cleanText(tail === "" ? (note ?? "") : tail).trimEnd();
  return {
    nodes: [node],
    stage,
    title,
    module,
    problem: at === undefined ? found : { ...found, at },
    cause: causeFirst(found, item.exitStatus).message,
    ...defined({ at }),
    output: text === "" ? [] : text.split("\n").slice(-LINES),
  };
}

/** Nodes that failed alike stand together. */
function group(failures: readonly FailureDigest[]): readonly FailureDigest[] {
  const found = new Map<string, FailureDigest>();
  for (const failure of failures) {
    const { stage, title, module, problem, at } = failure;
    const key = JSON.stringify([stage, title, module, problem.code, at?.file, at?.line, at?.column]);
    const known = found.get(key);
    found.set(key, known ? { ...known, nodes: [...known.nodes, ...failure.nodes] } : failure);
  }
  return [...found.values()];
}

function nextOf(
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
  const resume = { command: `kcore runs resume ${id}`, why: "go on where it stopped; what is done is not done again" };
  // A run is resumed as it was planned; a mistake in the project needs a new run.
  if (state !== "failed") return [resume, replay];
  return [
    { command, why: "when the project is mended" },
    { ...resume, why: "when a node is mended: go on where it stopped" },
    replay,
  ];
}
