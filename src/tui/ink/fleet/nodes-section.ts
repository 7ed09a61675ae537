import { formatBinary, since } from "#base/units.ts";
import { approvalWord, labelPairs, statusWord } from "../../fleet-words.ts";
import { coarseSince } from "../../columns/column.ts";
import { concernOfExpiry, type Concern } from "../../columns/concern.ts";
import { diskFull, diskShare, nodeColumns, percent, nodeReason, statusRole } from "../../columns/node-columns.ts";
import { expiryFact } from "./cells.ts";
import { conflictFacts } from "./conflicts-section.ts";
import type { DetailFact, Section } from "./section.ts";
import type { FleetNode, FleetRun, FleetSnapshot } from "./snapshot.ts";

/** Ranks a node: not ready or expiring first, then waiting or never registered, then ready, then rejected. */
export function concernOfNode(node: FleetNode, now: number): Concern {
  if (node.status === "rejected") return node.conflicts > 0 ? 1 : 3;
  // The roster names the node, but the node has never registered.
  if (node.status === "unknown") return 1;
  if (node.status === "not-ready") return 0;
  const expiry = concernOfExpiry(node.certificateExpires, now);
  if (expiry === 0) return 0;
  if ((diskShare(node.usage) ?? 0) >= diskFull) return 1;
  return node.status === "pending" || node.conflicts > 0 || node.nameConflict || expiry === 1 ? 1 : 2;
}

/** A text to sort by in which numbers count as numbers: n2 comes before n10. */
function natural(text: string): string {
  return text.replaceAll(/\d+/g, (digits) => digits.padStart(10, "0"));
}

export const nodesSection: Section<FleetNode> = {
  name: "nodes",
  title: "nodes",
  emptyText: "no nodes yet: kcore orchestrate deploy_node NODE",
  rows: ({ nodes }) => nodes,
  key: ({ id }) => id,
  dc: ({ dc }) => dc,
  text: (node) =>
    [
      node.hostname,
      node.id,
      node.address,
      node.dc,
      node.version,
      statusWord(node),
      approvalWord(node),
      node.reason ?? "",
      ...node.roles,
      ...labelPairs(node.labels),
    ].join(" "),
  concern: concernOfNode,
  orders: [
    { name: "name", by: ({ hostname }) => natural(hostname) },
    { name: "status", by: ({ status }) => status },
    { name: "dc", by: ({ dc }) => natural(dc) },
    { name: "version", by: ({ version }) => natural(version) },
    { name: "heartbeat", by: ({ lastSeen }) => lastSeen },
    { name: "expiry", by: ({ certificateExpires }) => certificateExpires },
    { name: "conflicts", by: ({ conflicts }) => -conflicts },
    { name: "load", by: ({ cpu, usage }) => -((usage?.load ?? 0) / Math.max(1, cpu)) },
    { name: "memory", by: ({ memory, usage }) => -((usage?.memoryUsed ?? 0) / Math.max(1, memory)) },
    { name: "disk", by: ({ usage }) => -(diskShare(usage) ?? 0) },
  ],
  columns: nodeColumns,
  open: (node, snapshot, { theme, now }) => {
    const detail = snapshot.detail?.id === node.id ? snapshot.detail : undefined;
    const reason = nodeReason(node);
    const name = node.nameConflict;
    return {
      title: node.hostname,
      facts: [
        ["status", `${statusWord(node)}${reason === "" ? "" : `: ${reason}`}`, statusRole(node)],
        ["approval", approvalWord(node)],
        ["next", nextCommand(node, now)],
        ["heartbeat", node.lastSeen === "" ? "" : `${coarseSince(node.lastSeen, now)} ago`],
        ["load", loadText(node)],
        ["memory used", partText(node.usage?.memoryUsed, node.memory)],
        ["disk used", partText(node.usage?.diskUsed, node.usage?.diskSize)],
      ],
      groups: [
        ...conflictsOf(node, snapshot).map(
          (conflict, index) =>
            [index === 0 ? "open conflicts" : "", conflictFacts(conflict, theme.glyphs, now)] as const,
        ),
        ["runs", (detail?.runs ?? []).map((run) => runFact(run, now))],
        [
          "properties",
          [
            ["id", node.id],
            ["datacenter", node.dc],
            ["address", node.address],
            ["roles", node.roles.join(", ")],
            ["labels", labelPairs(node.labels).join(", ")],
            ["version", node.version],
            ["machine", node.cpu === 0 ? "" : `${node.cpu} cores, ${formatBinary(node.memory)}`],
            ["registered", node.registered],
            expiryFact("certificate", node.certificateExpires, now),
            ...(name
              ? [
                  [
                    "name conflict",
                    `${name.keepsName ? "keeps its name" : "does not own its name"}; also: ${name.with.join(", ")}`,
                    "warning",
                  ] as const,
                ]
              : []),
            ...(detail?.facts ?? []),
          ],
        ],
      ],
    };
  },
  command: nextCommand,
};

function conflictsOf(node: FleetNode, { conflicts }: FleetSnapshot) {
  return conflicts.filter(
    ({ kind, key, winner, loser }) =>
      key.startsWith(`node/${node.id}/`) ||
      (kind === "name" && [winner.value, loser.value].some((value) => value.includes(node.id))),
  );
}

/** The command that an operator most likely needs next for a node. */
function nextCommand({ hostname, id, status, conflicts, certificateExpires }: FleetNode, now: number): string {
  if (status === "pending") return `kcore node approve ${hostname}`;
  if (status === "not-ready") return `kcore exec --on ${hostname} -- systemctl status kcore-node-agent`;
  if (conflicts > 0) return "kcore get conflicts";
  if (certificateExpires !== "" && concernOfExpiry(certificateExpires, now) < 2) return "kcore rotate certs";
  return `kcore describe node ${id}`;
}

function loadText({ cpu, usage }: FleetNode): string {
  return usage?.load === undefined ? "" : `${usage.load.toFixed(2)} on ${cpu} cores`;
}

function partText(used: number | undefined, all: number | undefined): string {
  if (used === undefined || !all) return "";
  return `${formatBinary(used)} of ${formatBinary(all)} (${percent(used / all)})`;
}

function runFact({ id, state, at, command, milestone }: FleetRun, now: number): DetailFact {
  const reached = milestone === undefined ? "" : `, reached ${milestone}`;
  const text = `${command.replace(/^kcore /, "")}, ${since(at, now)} ago${reached} (${id})`;
  return [state, text, ["failed", "unreachable", "died"].includes(state) ? "failed" : "plain"];
}
