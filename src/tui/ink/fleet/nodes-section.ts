import { formatBinary, since } from "#base/units.ts";
import { approvalWord, labelPairs, statusWord } from "../../fleet-labels.ts";
import { span, type Line } from "../text.ts";
import type { Role, Theme } from "../theme.ts";
import {
  coarseSince,
  concernMark,
  concernOfExpiry,
  countCell,
  expiryCell,
  expiryFact,
  graph,
  seenCell,
} from "./cells.ts";
import { conflictFacts } from "./conflicts-section.ts";
import type { Concern, Fact, Section } from "./section.ts";
import type { FleetNode, FleetRun, FleetSnapshot, FleetUsage } from "./snapshot.ts";

/** Ranks a node: not ready or expiring first, then waiting or never registered, then ready, then rejected. */
export function concernOfNode(node: FleetNode, now: number): Concern {
  if (node.status === "rejected") return node.conflicts > 0 ? 1 : 3;
  // The roster names the node, but the node has never registered.
  if (node.status === "unknown") return 1;
  if (node.status === "not-ready") return 0;
  const expiry = concernOfExpiry(node.certificateExpires, now);
  if (expiry === 0) return 0;
  if (node.usage && diskShare(node.usage) >= diskFull) return 1;
  return node.status === "pending" || node.conflicts > 0 || node.nameConflict || expiry === 1 ? 1 : 2;
}

function statusRole({ status }: FleetNode): Role {
  return { ready: "ok", "not-ready": "failed", pending: "warning", rejected: "muted", unknown: "muted" }[
    status
  ] as Role;
}

/** Numbers in names count as numbers: n2 comes before n10. */
function natural(text: string): string {
  return text.replaceAll(/\d+/g, (digits) => digits.padStart(10, "0"));
}

export const nodesSection: Section<FleetNode> = {
  name: "nodes",
  title: "nodes",
  none: "no nodes yet: kcore orchestrate deploy_node NODE",
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
    { name: "disk", by: ({ usage }) => (usage ? -diskShare(usage) : 0) },
  ],
  columns: ({ theme, now }) => [
    { title: "", width: 1, drop: 0, cell: (node) => [concernMark(concernOfNode(node, now), theme)] },
    { title: "NODE", width: 12, grow: 3, max: 36, drop: 0, cell: ({ hostname }) => [span(hostname)] },
    { title: "STATUS", width: 8, drop: 0, cell: (node) => [span(statusWord(node), statusRole(node))] },
    { title: "DC", width: 5, grow: 1, max: 14, drop: 4, cell: ({ dc }) => [span(dc)] },
    { title: "ROLES", width: 10, grow: 1, max: 24, drop: 9, cell: ({ roles }) => [span(roles.join(","))] },
    { title: "VERSION", width: 8, grow: 1, max: 16, drop: 10, cell: ({ version }) => [span(version, "muted")] },
    { title: "SEEN", width: 5, align: "right", drop: 1, cell: ({ lastSeen }) => seenCell(lastSeen, now) },
    { title: "LOAD", width: 4 + graphWidth, align: "right", drop: 5, cell: (node) => loadCell(node, theme) },
    { title: "MEM", width: 4 + graphWidth, align: "right", drop: 6, cell: (node) => memoryCell(node, theme) },
    { title: "DISK", width: 4, align: "right", drop: 3, cell: diskCell },
    {
      title: "CERT",
      width: 7,
      align: "right",
      drop: 2,
      cell: ({ certificateExpires }) => expiryCell(certificateExpires, now),
    },
    { title: "CONFL", width: 5, align: "right", drop: 7, cell: conflictsCell },
    { title: "ADDRESS", width: 15, grow: 1, max: 24, drop: 11, cell: ({ address }) => [span(address, "muted")] },
    { title: "REASON", width: 18, grow: 4, drop: 8, cell: (node) => [span(reasonInRow(node, now), "muted")] },
  ],
  open: (node, snapshot, { theme, now }) => {
    const detail = snapshot.detail?.id === node.id ? snapshot.detail : undefined;
    const reason = reasonOf(node);
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

function conflictsCell({ conflicts, nameConflict }: FleetNode): Line {
  return nameConflict ? [span(conflicts > 0 ? `${conflicts}+nm` : "name", "warning")] : countCell(conflicts);
}

function reasonOf({ reason, status, approval, usage }: FleetNode): string {
  if (reason !== undefined) return reason;
  if (status === "pending" && approval === "pending") return "waits for kcore node approve";
  return usage && diskShare(usage) >= diskFull ? `a disk is ${percent(diskShare(usage))} full` : "";
}

/** The reason in a row; silence is shown by its age instead of its date. */
function reasonInRow(node: FleetNode, now: number): string {
  const reason = reasonOf(node);
  return reason.startsWith("no heartbeat since ") ? `no heartbeat for ${coarseSince(node.lastSeen, now)}` : reason;
}

/** The command that an operator of this node wants next. */
function nextCommand({ hostname, id, status, conflicts, certificateExpires }: FleetNode, now: number): string {
  if (status === "pending") return `kcore node approve ${hostname}`;
  if (status === "not-ready") return `kcore exec --on ${hostname} -- systemctl status kcore-node-agent`;
  if (conflicts > 0) return "kcore get conflicts";
  if (certificateExpires !== "" && concernOfExpiry(certificateExpires, now) < 2) return "kcore rotate certs";
  return `kcore describe node ${id}`;
}

const graphWidth = 7;
/** Shares of use at which a disk is nearly full, and full. */
const diskTight = 0.85;
const diskFull = 0.95;

function diskShare({ diskUsed = 0, diskSize = 0 }: FleetUsage): number {
  return diskSize > 0 ? Math.min(1, Math.max(0, diskUsed / diskSize)) : 0;
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

/** The cell of a value that the node has not reported. */
const unknown: Line = [span("-", "muted")];

function loadCell({ cpu, usage, trend }: FleetNode, { glyphs }: Theme): Line {
  if (usage?.load === undefined) return unknown;
  const role = cpu > 0 && usage.load > cpu ? "warning" : "plain";
  const text = usage.load >= 99.95 ? String(Math.round(usage.load)) : usage.load.toFixed(1);
  return [span(graph(trend?.load ?? [], graphWidth - 1, glyphs), "muted"), span(text.padStart(5), role)];
}

function memoryCell({ memory, usage, trend }: FleetNode, { glyphs }: Theme): Line {
  if (usage?.memoryUsed === undefined || memory <= 0) return unknown;
  const share = Math.min(1, Math.max(0, usage.memoryUsed / memory));
  return [
    span(graph(trend?.memory ?? [], graphWidth - 1, glyphs), "muted"),
    span(percent(share).padStart(5), share >= 0.9 ? "warning" : "plain"),
  ];
}

function diskCell({ usage }: FleetNode): Line {
  if (!usage?.diskSize) return unknown;
  const share = diskShare(usage);
  return [span(percent(share), share >= diskFull ? "failed" : share >= diskTight ? "warning" : "plain")];
}

function loadText({ cpu, usage }: FleetNode): string {
  return usage?.load === undefined ? "" : `${usage.load.toFixed(2)} on ${cpu} cores`;
}

function partText(used: number | undefined, all: number | undefined): string {
  if (used === undefined || !all) return "";
  return `${formatBinary(used)} of ${formatBinary(all)} (${percent(used / all)})`;
}

function runFact({ id, state, at, command, milestone }: FleetRun, now: number): Fact {
  const reached = milestone === undefined ? "" : `, reached ${milestone}`;
  const text = `${command.replace(/^kcore /, "")}, ${since(at, now)} ago${reached} (${id})`;
  return [state, text, ["failed", "unreachable", "died"].includes(state) ? "failed" : "plain"];
}
