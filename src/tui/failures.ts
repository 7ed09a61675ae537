import type { NodeModel, RunModel } from "#engine/events/run-model.ts";
import type { Problem } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { causeFirst } from "./cause-line.ts";
import { ownProblems } from "./tally.ts";
import { causeIn, itemsByNode, itemNames, type WorkItem } from "./work-item.ts";

/** The cause that stopped one or more nodes, the same step with the same problem. The texts are those of the first node. */
export interface RunFailure {
  /** Empty when the run itself failed. */
  readonly nodes: readonly string[];
  readonly stage?: string;
  readonly title: string;
  readonly module?: string;
  readonly problem: Problem;
  /** The cause in one line: “no space left on device (exit 28)”. */
  readonly cause: string;
  readonly item?: WorkItem;
}

/** The first cause of each failure, without its consequences; nodes that failed alike share one failure. */
export function failuresOf(model: RunModel): readonly RunFailure[] {
  const alike = new Map<string, RunFailure & { readonly nodes: string[] }>();
  const own: RunFailure[] = [];
  for (const { node, items } of itemsByNode(model)) {
    // In a resumed run, a failure of its last part counts before an earlier one.
    const newest = items.filter(({ startedAt }) => startedAt >= model.partAt);
    if (!node) {
      own.push(...newest.filter(({ outcome }) => outcome === "failed").map((item) => failureOfItem(item, "bastion")));
      continue;
    }
    const failure = causeOf(node, causeIn(newest) ?? (node.problem ? undefined : causeIn(items)));
    if (!failure) continue;
    const { stage, title, module, problem } = failure;
    const { code, at } = problem;
    const key = JSON.stringify([stage, title, module, code, at?.file, at?.line, at?.column]);
    const known = alike.get(key);
    if (known) known.nodes.push(node.name);
    else alike.set(key, { ...failure, nodes: [node.name] });
  }
  const ofRun = ownProblems(model).map((problem) => ({ title: "the run itself", problem, cause: problem.message }));
  return [...alike.values(), ...own, ...ofRun.map((failure) => ({ nodes: [], ...failure }))];
}

function causeOf({ name, outcome, problem }: NodeModel, item: WorkItem | undefined): RunFailure | undefined {
  if (outcome === "done" || outcome === "not-started") return undefined;
  if (item) return failureOfItem(item, name, problem);
  return problem && { nodes: [name], title: outcome ?? "not finished", problem, cause: problem.message };
}

function failureOfItem(item: WorkItem, node: string, other?: Problem): RunFailure {
  const names = itemNames(item);
  const message = `${names.title} failed without saying why`;
  const cause: Problem = item.problem ?? other ?? { code: "INTERNAL", message };
  const problem = { ...cause, ...omitUndefined({ at: cause.at ?? item.position }) };
  return { nodes: [node], ...names, problem, cause: causeFirst(cause, item.exitStatus).message, item };
}
