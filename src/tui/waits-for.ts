import type { RunModel } from "#engine/events/run-model.ts";

/** What a node waits for that has not begun, or has ended a stage and not begun the next one; undefined: nothing more is known to come. */
export function waitsFor(model: RunModel, name: string): string | undefined {
  const node = model.nodes.get(name);
  if (!node || node.outcome !== undefined || model.state === "finished") return undefined;
  if (model.questions.some((question) => question.node === undefined || question.node === name))
    return "waits for your answer";
  const { stages } = model;
  const begun = new Set(node.steps.map(({ stage }) => stage));
  const last = stages.findLastIndex(({ id }) => begun.has(id));
  const isOpen = ({ state }: (typeof stages)[number]) => state === "pending" || state === "running";
  const next = stages.findIndex((stage, index) => index > last && isOpen(stage) && namesOf(stage.nodes).has(name));
  if (next === -1) return undefined;
  const before = stages.slice(0, next).filter(isOpen);
  const blocking = before.find(({ state }) => state === "running") ?? before[0];
  return blocking ? `waits for ${blocking.title}` : `waits for its turn: ${stages[next]?.title ?? ""}`;
}

const known = new WeakMap<readonly string[], ReadonlySet<string>>();

/** A stage's nodes never change: of a thousand each is asked for in each frame. */
function namesOf(nodes: readonly string[]): ReadonlySet<string> {
  const names = known.get(nodes) ?? new Set(nodes);
  known.set(nodes, names);
  return names;
}
