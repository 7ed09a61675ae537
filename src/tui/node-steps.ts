import { formatDuration } from "#base/units.ts";
import { cleanLine, cleanText } from "#engine/events/clean.ts";
import type { NodeModel, RunModel } from "#engine/events/run-model.ts";
import { causeLine } from "./cause-line.ts";
import { actionsByNode, itemNames, itemOf, itemsByNode, itemTitle, outcomeLabel, workOn } from "./work-item.ts";

/** The steps of a node and the actions for it, in the order in which they began; plain JSON. */
export function stepsOfNode(model: RunModel, node: NodeModel) {
  return workOn(node, actionsByNode(model).get(node.name) ?? []).map((work) => {
    const { stage, title, module, outcome, duration, reason, changes, diff, tail, problem, exitStatus } = itemOf(work);
    const cause = causeLine({ problem, exitStatus });
    const output = cleanText(tail).trimEnd();
    return { stage, title, module, outcome, milliseconds: duration, reason, cause, changes, diff, output };
  });
}

/** The steps as text, each with its changes and the last `lines` lines of its output. */
export function drawNodeSteps(steps: ReturnType<typeof stepsOfNode>, lines = 6): string {
  const drawn = steps.flatMap(({ outcome, milliseconds = 0, reason, cause, changes, diff, output, ...step }) => {
    const why = [cause, reason].filter((text) => text !== undefined).map((text) => `  ${text}`);
    const shown = diff === undefined ? changes : changes.filter(({ name }) => name !== "content");
    const body = [
      ...shown.map(({ name, have, want }) => `${name}: ${have ?? "(absent)"} → ${want}`),
      ...(diff === undefined ? [] : diff.trimEnd().split("\n")),
      ...(output === "" ? [] : output.split("\n").slice(-lines)).map((line) => `| ${line}`),
    ];
    const head = `${outcomeLabel(outcome).padEnd(12)}  ${formatDuration(milliseconds).padStart(6)}`;
    return [`${head}  ${itemTitle(step)}${why.join("")}`, ...body.map((line) => `    ${line}`)];
  });
  return drawn.map((line) => `${cleanLine(line)}\n`).join("");
}

/** The milliseconds of a run's steps and actions on all nodes, or on one, the longest first; `share` of all steps, 0 to 1. Plain JSON. */
export function stepTimes(model: RunModel, only?: NodeModel) {
  const items = itemsByNode(model).flatMap(({ node, items: own }) =>
    only === undefined || node?.name === only.name ? own.map((item) => ({ on: node?.name ?? "bastion", item })) : [],
  );
  const sum = (some: typeof items): number => some.reduce((all, { item: { duration = 0 } }) => all + duration, 0);
  const all = sum(items);
  return Object.values(Object.groupBy(items, ({ item }) => JSON.stringify(itemNames(item))))
    .flatMap((own = []) => {
      const [longest] = own.toSorted((a, b) => (b.item.duration ?? 0) - (a.item.duration ?? 0));
      if (!longest) return [];
      const nodes = new Set(own.map(({ on }) => on)).size;
      const most = { longest: longest.item.duration ?? 0, longestOn: longest.on };
      return [{ ...itemNames(longest.item), nodes, total: sum(own), ...most, share: all === 0 ? 0 : sum(own) / all }];
    })
    .toSorted((a, b) => b.total - a.total);
}
