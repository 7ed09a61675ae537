import { ageColumn, coarseSince } from "../../columns/column.ts";
import type { Concern } from "../../columns/concern.ts";
import type { DetailFact, Section } from "./section.ts";
import type { FleetUpdate, FleetUpdateNode } from "./snapshot.ts";

/** Phases in which the rollout does not wait for the node. */
const restingPhases: ReadonlySet<string> = new Set(["pending", "succeeded", "failed", "cancelled", "rolled_back"]);

/** Matches a wait for an operator, or for hooks on the bastion that no process there carries out. */
const waitsForOperator = /(?:^|; )(approval|promotion|the bastion(?!: [^;]* \(attended by ))\b/;

/** The concern of a rollout: 0 for a failed node, 1 if an operator is needed or the owner is silent, else 2. */
export function concernOfUpdate({ nodes, owner, waits = "" }: FleetUpdate): Concern {
  if (nodes.some(({ phase }) => phase === "failed")) return 0;
  return owner.heard && !waitsForOperator.test(waits) ? 2 : 1;
}

function underWay({ nodes }: FleetUpdate): readonly FleetUpdateNode[] {
  return nodes.filter(({ phase }) => !restingPhases.has(phase));
}

/** For each datacenter, the number of succeeded nodes and of all nodes: `DC1 3/3, DC2 0/2`. */
function doneByDc({ nodes }: FleetUpdate): string {
  const dcs = [...Map.groupBy(nodes, ({ dc }) => dc)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const done = (of: readonly FleetUpdateNode[]): number => of.filter(({ phase }) => phase === "succeeded").length;
  return dcs.map(([dc, all]) => `${dc} ${done(all)}/${all.length}`).join(", ");
}

/** The section of the rollouts that are not over. */
export const updatesSection: Section<FleetUpdate> = {
  name: "updates",
  title: "updates",
  emptyText: "no rollout is going on",
  rows: ({ updates }) => updates,
  key: ({ name }) => name,
  dc: () => undefined,
  text: (update) =>
    [update.name, update.phase, update.target, ...underWay(update).map(({ hostname }) => hostname)].join(" "),
  concern: concernOfUpdate,
  orders: [
    { name: "name", by: ({ name }) => name },
    { name: "age", by: ({ since }) => since },
  ],
  columns: [
    { title: "NAME", cell: ({ name }) => name, room: { width: 14, grow: 1, max: 30, drop: 0 } },
    { title: "PHASE", cell: ({ phase }) => phase, room: { width: 12, drop: 0 } },
    { title: "DONE", cell: doneByDc, room: { width: 16, grow: 1, max: 40, drop: 1 } },
    { title: "UNDER-WAY", cell: underWayText, room: { width: 10, grow: 2, max: 60, drop: 2 } },
    { title: "WAITS-FOR", cell: ({ waits = "" }) => waits, role: "muted", room: { width: 10, grow: 2, drop: 3 } },
    ageColumn("CHANGED", ({ since }) => since, { room: { width: 7, drop: 4 } }),
  ],
  open: (update, _snapshot, { now }) => ({
    title: update.name,
    facts: [
      ["phase", update.phase, "strong"],
      ["target", update.target],
      ["generation", String(update.generation)],
      ["done", doneByDc(update)],
      ["waits for", update.waits ?? ""],
      ["owner", `${update.owner.name}${update.owner.heard ? "" : ", not heard of"}`],
    ],
    groups: [
      ["under way", underWay(update).map((node) => nodeFact(node, now))],
      ["failed", update.nodes.filter(({ phase }) => phase === "failed").map((node) => nodeFact(node, now))],
    ],
  }),
  command: ({ name, phase, waits = "" }) => {
    const [, word] = waitsForOperator.exec(waits) ?? [];
    const verb = word && { approval: "approve", promotion: "promote", "the bastion": "run-hooks" }[word];
    return verb && !phase.startsWith("rolling_back")
      ? `kcore update cluster ${verb} ${name}`
      : `kcore update cluster get ${name} -w`;
  },
};

function underWayText(update: FleetUpdate): string {
  return underWay(update)
    .map(({ hostname, phase }) => `${hostname} ${phase}`)
    .join(", ");
}

function nodeFact({ hostname, dc, phase, since, trouble = "" }: FleetUpdateNode, now: number): DetailFact {
  return [hostname, `${phase} for ${coarseSince(since, now)}, ${dc}${trouble === "" ? "" : `: ${trouble}`}`];
}
