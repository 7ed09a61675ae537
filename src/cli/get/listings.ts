import { since, until, formatBinary } from "#base/units.ts";
import type { ApiClient } from "#api/client.ts";
import type { ControllerView } from "#api/controller-schemas.ts";
import type { CertificateView, ConflictView, NodeView } from "#api/schemas.ts";
import { certificateWord, valueText, approvalWord, labelPairs, statusWord, taintText } from "#tui/fleet-labels.ts";
import { findNode, findNodes } from "../node/find-node.ts";
import type { Listing } from "./show-listing.ts";
import type { Column } from "../terminal/format-table.ts";
import { usageError } from "#errors/problem.ts";

/** Lists the named nodes, or all, as far as the flags select them; sorted by name. */
export function nodeListing(words: readonly string[], flags: SelectorFlags): Listing<NodeView> {
  return {
    fetch: async (client) => {
      const named = words.length > 0 ? await findNodes(client, words) : (await client.call("listNodes", {})).nodes;
      return selectNodes(named, flags).toSorted((a, b) => compare(a.hostname, b.hostname) || compare(a.id, b.id));
    },
    key: ({ id }) => id,
    columns: nodeColumns,
    none:
      flags.selector || flags.dc
        ? "no node fits"
        : "no nodes yet: kcore orchestrate deploy_node NODE, or kcore apply -f FILE",
    registers: ["node/", "controller/"],
  };
}

export const controllerListing: Listing<ControllerView> = {
  fetch: async (client) => {
    const { controllers } = await client.call("listControllers", {});
    return controllers.toSorted((a, b) => compare(a.dc, b.dc) || compare(a.address, b.address));
  },
  key: ({ controllerId }) => controllerId,
  columns: [
    { title: "ID", cell: ({ controllerId }) => controllerId },
    { title: "ADDRESS", cell: ({ address }) => address },
    { title: "DC", cell: ({ dc }) => dc },
    { title: "STATE", cell: ({ state }) => state },
    { title: "VERSION", cell: ({ version }) => version },
    { title: "AGE", cell: ({ registered }, now) => since(registered, now) },
    { title: "CONTACT", cell: ({ lastContact, state }, now) => (state === "self" ? "-" : since(lastContact, now)) },
    { title: "CERT-EXPIRY", cell: ({ certificateExpires = "" }, now) => until(certificateExpires, now) },
    { title: "SUB-CA-EXPIRY", cell: ({ subCa }, now) => until(subCa?.notAfter ?? "", now) },
    { title: "MANUAL-APPROVAL", wide: true, cell: ({ requireManualApproval }) => yesOrNo(requireManualApproval) },
    { title: "SUB-CA", wide: true, cell: ({ subCa }) => subCa?.serial ?? "" },
    { title: "KEY", wide: true, cell: ({ key }) => key },
  ],
  none: "no controllers",
  registers: ["controller/"],
};

/** Two concurrent edits of one thing, or one name that several nodes have. */
export type ConflictRow =
  | ({ readonly type: "edit" } & ConflictView)
  | {
      readonly type: "name";
      readonly id: string;
      readonly hostname: string;
      readonly nodes: readonly string[];
      readonly keptBy: string;
    };

/** The newest loser, and the number of others. */
function losersOf({ loser, others = [] }: ConflictView): string {
  return shortValue(loser.value) + (others.length > 0 ? ` (+${others.length})` : "");
}

export const conflictListing: Listing<ConflictRow> = {
  fetch: async (client) => {
    const { conflicts, names } = await client.call("listConflicts", {});
    return [
      ...conflicts.map((conflict) => ({ type: "edit" as const, ...conflict })),
      ...names.map((name) => ({ type: "name" as const, id: `name:${name.hostname}`, ...name })),
    ];
  },
  key: ({ id }) => id,
  columns: [
    { title: "ID", cell: ({ id }) => id },
    { title: "KEY", cell: (row) => (row.type === "edit" ? row.key : "(host name)") },
    { title: "WINNER", cell: (row) => (row.type === "edit" ? shortValue(row.winner.value) : row.keptBy) },
    {
      title: "LOSER",
      cell: (row) => (row.type === "edit" ? losersOf(row) : row.nodes.filter((id) => id !== row.keptBy).join(",")),
    },
    { title: "AGE", cell: (row, now) => since(row.type === "edit" ? row.at : "", now) },
    { title: "WINNER-FROM", wide: true, cell: (row) => (row.type === "edit" ? row.winner.origin : "") },
    { title: "LOSER-FROM", wide: true, cell: (row) => (row.type === "edit" ? row.loser.origin : "") },
  ],
  none: "no conflicts",
  registers: ["conflict/", "node/"],
};

/** Certificates as `get certificates` chooses them. */
export interface CertificateFlags {
  readonly node?: string;
  readonly status?: CertificateView["status"];
  readonly expiringWithinDays?: number;
}

export function certificateListing({ node, status, expiringWithinDays }: CertificateFlags): Listing<CertificateView> {
  return {
    fetch: async (client) => {
      const { certificates } = await client.call("listCertificates", {});
      const holder = node === undefined ? undefined : await holderOf(node, certificates, client);
      const limit = expiringWithinDays === undefined ? Infinity : Date.now() + expiringWithinDays * 86_400_000;
      return certificates
        .filter(
          (found) =>
            (holder === undefined || found.id === holder) &&
            (status === undefined || found.status === status) &&
            (limit === Infinity || (found.status === "active" && Date.parse(found.notAfter) <= limit)),
        )
        .toSorted((a, b) => compare(a.role, b.role) || compare(a.id, b.id) || compare(b.issued, a.issued));
    },
    key: ({ serial }) => serial,
    columns: [
      { title: "SERIAL", cell: ({ serial }) => serial },
      { title: "ROLE", cell: ({ role }) => role },
      { title: "ID", cell: ({ id }) => id },
      { title: "STATUS", cell: certificateWord },
      { title: "AGE", cell: ({ issued }, now) => since(issued, now) },
      { title: "EXPIRY", cell: ({ notAfter }, now) => until(notAfter, now) },
      { title: "ISSUER", wide: true, cell: ({ issuer }) => issuer },
      { title: "SPKI", wide: true, cell: ({ spki }) => spki },
      { title: "REVOKED", wide: true, cell: ({ revoked }) => (revoked ? `${revoked.reason} (${revoked.by})` : "") },
    ],
    none: "no certificates",
    registers: ["cert/", "revoked/", "node/", "controller/"],
  };
}

/** The id of the holder by id or name: controllers and operators have certificates, too. */
async function holderOf(word: string, certificates: readonly CertificateView[], client: ApiClient): Promise<string> {
  if (certificates.some(({ id }) => id === word)) return word;
  return (await findNode(client, word)).id;
}

/** A value on one line, cut where it would not fit into a table. */
function shortValue(value: unknown): string {
  const text = valueText(value);
  return text.length > 48 ? `${text.slice(0, 47)}…` : text;
}

function yesOrNo(value: boolean | undefined): string {
  return value === undefined ? "" : value ? "yes" : "no";
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export const nodeColumns: readonly Column<NodeView>[] = [
  { title: "NAME", cell: ({ hostname }) => hostname },
  { title: "STATUS", cell: statusWord },
  { title: "APPROVAL", cell: approvalWord },
  { title: "ROLES", cell: ({ roles }) => roles.join(",") },
  { title: "DC", cell: ({ dc }) => dc },
  { title: "ADDRESS", cell: ({ address }) => address },
  { title: "VERSION", cell: ({ version }) => version },
  { title: "AGE", cell: ({ registered }, now) => since(registered, now) },
  { title: "SEEN", cell: ({ lastSeen }, now) => since(lastSeen, now) },
  { title: "CERT-EXPIRY", cell: ({ certificateExpires }, now) => until(certificateExpires, now) },
  { title: "CONFLICTS", cell: conflictsOf },
  { title: "CPU", wide: true, cell: ({ cpu }) => (cpu === 0 ? "" : String(cpu)) },
  { title: "MEMORY", wide: true, cell: ({ memory }) => (memory === 0 ? "" : formatBinary(memory)) },
  { title: "LABELS", wide: true, cell: ({ labels }) => labelPairs(labels).join(",") },
  { title: "TAINTS", wide: true, cell: ({ taints }) => taints.map(taintText).join(",") },
  { title: "ID", wide: true, cell: ({ id }) => id },
  { title: "REASON", wide: true, cell: ({ reason = "" }) => reason },
];

function conflictsOf({ conflicts, nameConflict }: NodeView): string {
  return [conflicts > 0 || !nameConflict ? String(conflicts) : "", nameConflict ? "name" : ""]
    .filter((part) => part !== "")
    .join("+");
}

/** Flags that choose among nodes. */
export interface SelectorFlags {
  readonly selector?: readonly string[];
  readonly dc?: readonly string[];
}

type Selected = Pick<NodeView, "labels" | "dc">;
type Test = (labels: Readonly<Record<string, string>>) => boolean;

/**
 * The nodes that fit all of `-l` (`k=v`, `k!=v`, `k`, `!k`; several by commas or repeated) and one of `--dc`.
 * @throws KcoreError USAGE
 */
export function selectNodes<Node extends Selected>(
  nodes: readonly Node[],
  { selector = [], dc = [] }: SelectorFlags,
): readonly Node[] {
  const tests = selector.flatMap((text) => text.split(",")).map(testOf);
  return nodes.filter((node) => tests.every((test) => test(node.labels)) && (dc.length === 0 || dc.includes(node.dc)));
}

function testOf(term: string): Test {
  const [, not, key = "", operator, value = ""] =
    /^\s*(!)?([A-Za-z0-9][A-Za-z0-9._/-]*)\s*(?:(==?|!=)\s*([^\s=!]*))?\s*$/.exec(term) ?? [];
  if (key === "" || (not !== undefined && operator !== undefined))
    throw usageError(`“${term}” is no label selector`, "key=value, key!=value, key or !key; several with commas");
  if (operator === undefined) return (labels) => Object.hasOwn(labels, key) === (not === undefined);
  const isWanted = operator !== "!=";
  return (labels) => ((Object.hasOwn(labels, key) ? labels[key] : undefined) === value) === isWanted;
}
