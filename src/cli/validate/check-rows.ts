import type { NodeModel, RunModel } from "#engine/events/run-model.ts";
import { causeLine } from "#tui/cause-line.ts";
import { ownProblems } from "#tui/tally.ts";
import { itemsByNode, withoutWave, type WorkItem } from "#tui/work-item.ts";
import type { Problem } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";

export type CheckResult = "ok" | "warning" | "failed" | "skipped" | "unknown" | "unreachable" | "interrupted";

/** One check on one node, or of the bastion, as `kcore validate -o json` prints it. */
export interface CheckRow {
  readonly topic: string;
  readonly check: string;
  /** Absent: a check of the bastion. */
  readonly node?: string;
  readonly result: CheckResult;
  /** The value or message that was found; of a check that was left out, the condition. */
  readonly found?: string;
  /** The output of the check, and the reason why it matters. */
  readonly detail?: string;
  readonly remedy?: string;
  readonly code?: Problem["code"];
}

/** A row with all its nodes: equal results once. */
export interface CheckGroup extends Omit<CheckRow, "node"> {
  readonly nodes: readonly string[];
}

/** The topic of rows about a node that could not be asked. */
export const reachTopic = "reach";

/** Every check of a run, passed ones too, in the order of topics and steps. */
export function rowsOf(model: RunModel): readonly CheckRow[] {
  const titles = new Map(model.stages.map(({ id, title }) => [id, title]));
  const order = new Map(model.stages.map(({ id }, at) => [id, at]));
  const found = itemsByNode(model).flatMap(({ node, items }) => {
    const rows = items.map((item) => ({
      at: order.get(item.stage) ?? 0,
      row: rowOf(item, titles.get(item.stage) ?? item.stage, node?.name),
    }));
    if (!node || !isLost(node, items)) return rows;
    const result = node.outcome === "unreachable" ? "unreachable" : "failed";
    const own = { topic: reachTopic, check: "the node can be asked", node: node.name, result } as const;
    return [{ at: -1, row: { ...own, ...whyOf(node.problem, own.check) } }, ...rows];
  });
  const ofRun = ownProblems(model)
    .filter(({ code }) => code !== "NODES_FAILED")
    .map((problem) => {
      const own = { topic: "run", check: "the run", result: "failed" } as const;
      return { at: -1, row: { ...own, ...whyOf(problem, own.check) } };
    });
  return [...ofRun, ...found].toSorted((a, b) => a.at - b.at).map(({ row }) => row);
}

/** Whether the node's part ended before its checks, for a reason that none of them reports. */
function isLost({ outcome }: NodeModel, items: readonly WorkItem[]): boolean {
  if (outcome === "done" || outcome === "not-started") return false;
  return !items.some((item) => item.outcome === "failed" || item.outcome === "interrupted");
}

function rowOf(item: WorkItem, stageTitle: string, node: string | undefined): CheckRow {
  const { stage, title, outcome, warning, reason, exitStatus } = item;
  // An action's title is its stage, which has the words of the orchestration.
  const isAction = item.key.includes("\n!");
  const check = isAction ? stageTitle : title;
  // An action's stage is called TOPIC_NAME.
  const topic = withoutWave(stage).replace(/_.*/, "");
  const own = { topic, check, ...omitUndefined({ node }) };
  if (warning) return { ...own, result: "warning", ...whyOf(warning, check) };
  switch (outcome) {
    case "ok":
    case "changed":
      return { ...own, result: "ok" };
    case "failed":
    case "would-change":
      return { ...own, result: "failed", ...whyOf(item.problem, check, exitStatus) };
    case "skipped":
    case "unknown":
      return { ...own, result: outcome, ...omitUndefined({ found: reason }) };
    default:
      return { ...own, result: "interrupted", ...omitUndefined({ found: reason }) };
  }
}

function whyOf(problem: Problem | undefined, check: string, exitStatus?: number): Partial<CheckRow> {
  const said = causeLine({ problem, exitStatus });
  const found = said?.startsWith(`${check}: `) ? said.slice(check.length + 2) : said;
  const { detail, hint: remedy, code } = problem ?? {};
  return omitUndefined({ found, detail, remedy, code });
}

/** The rows with equal results together. */
export function groupRows(rows: readonly CheckRow[]): readonly CheckGroup[] {
  const groups = new Map<string, CheckGroup & { readonly nodes: string[] }>();
  for (const { node = "bastion", ...row } of rows) {
    const { detail: _, ...alike } = row;
    // Remedies name their node.
    const key = JSON.stringify({ ...alike, remedy: alike.remedy?.replaceAll(node, "") });
    const known = groups.get(key);
    if (known) known.nodes.push(node);
    else groups.set(key, { ...row, nodes: [node] });
  }
  return [...groups.values()];
}

/** Whether a row says that something is wrong. */
export function isBad({ result }: Pick<CheckRow, "result">): boolean {
  return result === "failed" || result === "unreachable" || result === "interrupted";
}
