import { until } from "../../age.ts";
import { approvalWord, gibibytes, labelPairs, statusWord } from "../../fleet-words.ts";
import { span, type Line } from "../text.ts";
import type { Role } from "../theme.ts";
import {
  coarseSince,
  concernMark,
  concernOfExpiry,
  countCell,
  expiryCell,
  factLines,
  headed,
  sinceCell,
} from "./cells.ts";
import { conflictLines } from "./conflicts-section.ts";
import { roleOf, type Concern, type Section } from "./section.ts";
import type { FleetNode, FleetSnapshot } from "./snapshot.ts";

/** How a node stands: what is not ready or runs out comes before what waits, that before what is put aside. */
export function concernOfNode(node: FleetNode, now: number): Concern {
  if (node.status === "rejected" || node.status === "unknown") return node.conflicts > 0 ? 1 : 3;
  if (node.status === "not-ready") return 0;
  const expiry = concernOfExpiry(node.certificateExpires, now);
  if (expiry === 0) return 0;
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
      node.approval,
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
  ],
  columns: ({ theme, now }) => [
    { title: "", width: 1, drop: 0, cell: (node) => [concernMark(concernOfNode(node, now), theme)] },
    { title: "NODE", width: 12, grow: 3, max: 36, drop: 0, cell: ({ hostname }) => [span(hostname)] },
    { title: "STATUS", width: 8, drop: 0, cell: (node) => [span(statusWord(node), statusRole(node))] },
    { title: "DC", width: 5, grow: 1, max: 14, drop: 3, cell: ({ dc }) => [span(dc)] },
    { title: "ROLES", width: 10, grow: 1, max: 24, drop: 5, cell: ({ roles }) => [span(roles.join(","))] },
    { title: "VERSION", width: 8, grow: 1, max: 16, drop: 6, cell: ({ version }) => [span(version, "muted")] },
    { title: "SEEN", width: 5, align: "right", drop: 1, cell: ({ lastSeen }) => sinceCell(lastSeen, now) },
    {
      title: "CERT",
      width: 7,
      align: "right",
      drop: 2,
      cell: ({ certificateExpires }) => expiryCell(certificateExpires, now),
    },
    { title: "CONFL", width: 5, align: "right", drop: 4, cell: conflictsCell },
    { title: "ADDRESS", width: 15, grow: 1, max: 24, drop: 8, cell: ({ address }) => [span(address, "muted")] },
    { title: "REASON", width: 18, grow: 4, drop: 7, cell: (node) => [span(reasonOf(node), "muted")] },
  ],
  open: (node, snapshot, { theme, now, width }) => {
    const fact = (label: string, value: string, role?: Role): readonly Line[] => factLines(label, value, width, role);
    const { glyphs } = theme;
    const expiry = concernOfExpiry(node.certificateExpires, now);
    const reason = reasonOf(node);
    const status = `${statusWord(node)}${reason === "" ? "" : `: ${reason}`}`;
    return {
      title: node.hostname,
      lines: [
        ...fact("status", status, statusRole(node)),
        ...fact("approval", approvalWord(node)),
        ...fact("id", node.id),
        ...fact("datacenter", node.dc),
        ...fact("address", node.address),
        ...fact("roles", node.roles.join(", ")),
        ...fact("labels", labelPairs(node.labels).join(", ")),
        ...fact("version", node.version),
        ...fact("machine", node.cpu === 0 ? "" : `${node.cpu} cores, ${gibibytes(node.memory)}`),
        ...fact("heartbeat", node.lastSeen === "" ? "" : `${coarseSince(node.lastSeen, now)} ago`),
        ...fact("registered", node.registered),
        ...fact("certificate", expiryText(node.certificateExpires, now), expiry === 2 ? "plain" : roleOf(expiry)),
        ...(node.nameConflict
          ? fact(
              "name conflict",
              `${node.nameConflict.keepsName ? "keeps its name" : "does not own its name"}; also: ${node.nameConflict.with.join(", ")}`,
              "warning",
            )
          : []),
        ...(snapshot.detail?.id === node.id
          ? headed(
              "it tells",
              snapshot.detail.facts.flatMap(([label, value]) => factLines(label, value, width)),
            )
          : []),
        ...headed(
          "open conflicts",
          conflictsOf(node, snapshot)
            .flatMap((conflict) => [[], ...conflictLines(conflict, width, glyphs, now)])
            .slice(1),
        ),
      ],
    };
  },
  command: ({ id }) => `kcore describe node ${id}`,
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

function reasonOf({ reason, status, approval }: FleetNode): string {
  return reason ?? (status === "pending" && approval === "pending" ? "waits for kcore node approve" : "");
}

function expiryText(time: string, now: number): string {
  return time === "" ? "" : `${time} (${until(time, now)})`;
}
