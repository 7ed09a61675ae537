import type { RunModel } from "#engine/events/run-model.ts";

/** The reason why a node waits before its first or its next stage; undefined if no further stage is known. */
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

/** Kept, because a stage's nodes never change and every frame looks up each of perhaps a thousand nodes. */
function namesOf(nodes: readonly string[]): ReadonlySet<string> {
  const names = known.get(nodes) ?? new Set(nodes);
  known.set(nodes, names);
  return names;
}
