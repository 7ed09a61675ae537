import type { RunEventBody, StageOutline } from "#engine/events/event.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { hostPort } from "#engine/step/host-port.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { LiveRun } from "./live-run.ts";
import type { PlannedStage, RunPlan } from "./plan.ts";

/** The first event of a run: its plan, and who began it. */
export function runStartedEvent({ deps, plan, request }: Pick<LiveRun, "deps" | "plan" | "request">): RunEventBody {
  return {
    type: "run.started",
    runId: deps.runId,
    title: plan.title,
    command: request.command,
    nodes: plan.nodes,
    places: plan.nodes.map((name) => addressOf(plan.roster.nodes.get(name))),
    ...nodeIndexes(plan),
    stages: plan.stages.map((stage) => ({ ...outlineOf(stage), ...plan.planned?.get(stage) })),
    dryRun: request.dryRun,
    ...omitUndefined({ leftOut: plan.leftOut, revision: deps.revision, dirty: deps.dirty }),
    who: deps.who,
    ...(deps.earlier.length > 0 && { resumed: true }),
  };
}

/** A node's address in views: `root@192.0.2.1:22`, behind its jump hosts. */
function addressOf(node: NodeEntry | undefined): string {
  if (node === undefined) return "";
  if (node.transport === "local") return "this machine";
  return [...node.jump, `${node.user}@${hostPort(node.address, node.port)}`].join(" ");
}

/** By role and by datacenter, the indexes of the nodes in `nodes`: in the record, indexes are shorter than names. */
function nodeIndexes({ nodes, roster }: RunPlan) {
  const kinds = { roles: new Map<string, number[]>(), dcs: new Map<string, number[]>() };
  const add = (indexes: Map<string, number[]>, kind: string, index: number) => {
    const known = indexes.get(kind);
    if (known) known.push(index);
    else indexes.set(kind, [index]);
  };
  for (const [index, name] of nodes.entries()) {
    const entry = roster.nodes.get(name);
    if (!entry) continue;
    for (const role of entry.roles) add(kinds.roles, role, index);
    add(kinds.dcs, entry.dc, index);
  }
  return { roles: Object.fromEntries(kinds.roles), dcs: Object.fromEntries(kinds.dcs) };
}

function outlineOf({ id, title, nodes, task }: PlannedStage): StageOutline {
  return { id, title, nodes: nodes ?? [], ...(task.kind === "action" && { action: task.action.name }) };
}
