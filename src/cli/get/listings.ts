import type { ApiClient } from "#api/client.ts";
import type { ControllerView } from "#api/controller-schemas.ts";
import type { CertificateView, ConflictList, ConflictView, NodeView } from "#api/schemas.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { revisionWords } from "#engine/orchestrate/node-revisions.ts";
import type { FleetNode } from "#tui/ink/fleet/snapshot.ts";
import { certificateColumns } from "#tui/columns/certificate-columns.ts";
import { conflictColumns, conflictOfEdits, conflictOfName } from "#tui/columns/conflict-columns.ts";
import { controllerColumns } from "#tui/columns/controller-columns.ts";
import { nodeColumns } from "#tui/columns/node-columns.ts";
import { findNode, findNodes } from "../node/find-node.ts";
import type { CommonFlags } from "../options.ts";
import { fromProject } from "../project/project-cluster.ts";
import type { Listing } from "./show-listing.ts";
import { usageError } from "#errors/problem.ts";

/** The named nodes, or all, as far as the flags select them; by name, then id. In a project each has the revision that it got last. */
export function nodeListing(
  words: readonly string[],
  flags: SelectorFlags & PageFlags & CommonFlags,
): Listing<FleetNode> {
  return {
    fetch: async (client) => {
      const revisions = fromProject(flags.project, revisionWords);
      const revised = (node: NodeView): FleetNode => ({
        ...node,
        ...omitUndefined({ revision: revisions?.get(node.id) }),
      });
      if (flags.limit !== undefined && words.length === 0)
        return (await pageOf(client, flags.limit, flags)).map(revised);
      const named = words.length > 0 ? await findNodes(client, words) : (await client.call("listNodes", {})).nodes;
      return filterNodes(named, flags)
        .map(revised)
        .toSorted((a, b) => compare(a.hostname, b.hostname) || compare(a.id, b.id));
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

/** The first `limit` selected nodes after the flag's node, in the controllers' order; stderr tells how to go on. */
async function pageOf(
  client: ApiClient,
  limit: number,
  flags: PageFlags & SelectorFlags,
): Promise<readonly NodeView[]> {
  const { after: given = "", selector, dc } = flags;
  // A name alone stands for all nodes with this name: `~` comes after every id.
  const start = given === "" || given.includes("/") ? given : `${given}/~`;
  const size = selector || dc ? largestPage : limit + 1;
  const found: NodeView[] = [];
  for (let after: string | undefined = start; after !== undefined && found.length <= limit;) {
    const { nodes }: { readonly nodes: readonly NodeView[] } = await client.call(
      "listNodesAfter",
      {},
      { id: `${size}@${after}` },
    );
    found.push(...filterNodes(nodes, flags));
    after = nodes.length < size ? undefined : afterOf(nodes.at(-1));
  }
  const page = found.slice(0, limit);
  if (found.length > limit) process.stderr.write(`more nodes: --limit ${limit} --after ${afterOf(page.at(-1))}\n`);
  return page;
}

function afterOf(node: NodeView | undefined): string | undefined {
  return node && `${node.hostname}/${node.id}`;
}

export const controllerListing: Listing<ControllerView> = {
  fetch: async (client) => {
    const { controllers } = await client.call("listControllers", {});
    return controllers.toSorted((a, b) => compare(a.dc, b.dc) || compare(a.address, b.address));
  },
  key: ({ controllerId }) => controllerId,
  columns: controllerColumns,
  none: "no controllers",
  registers: ["controller/"],
};

/** A conflict: concurrent edits of one thing, or one name that several nodes have. */
export type ConflictRow =
  | ({ readonly type: "edit" } & ConflictView)
  | ({ readonly type: "name"; readonly id: string } & ConflictList["names"][number]);

export const conflictListing: Listing<ConflictRow> = {
  fetch: async (client) => {
    const { conflicts, names } = await client.call("listConflicts", {});
    return [
      ...conflicts.map((conflict) => ({ type: "edit" as const, ...conflict })),
      ...names.map((name) => ({ type: "name" as const, id: `name:${name.hostname}`, ...name })),
    ];
  },
  key: ({ id }) => id,
  columns: conflictColumns.map((column) => ({
    ...(column.wide && { wide: true }),
    title: column.title,
    cell: (row, now) => column.cell(row.type === "edit" ? conflictOfEdits(row) : conflictOfName(row), now),
  })),
  none: "no conflicts",
  registers: ["conflict/", "node/"],
};

/** The flags of `get certificates`. */
export interface CertificateFlags {
  readonly node?: string;
  readonly status?: CertificateView["status"];
  readonly expiringWithinDays?: number;
}

/** The certificates that the flags select, by role and id, each holder's newest first. */
export function certificateListing({ node, status, expiringWithinDays }: CertificateFlags): Listing<CertificateView> {
  return {
    fetch: async (client) => {
      const { certificates } = await client.call("listCertificates", {});
      const holder = node === undefined ? undefined : await certificateHolder(node, certificates, client);
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
    columns: certificateColumns,
    none: "no certificates",
    registers: ["cert/", "revoked/", "node/", "controller/"],
  };
}

/**
 * The holder's id: `word` if a certificate has this id, else the id of the node that `word` names.
 * @throws KcoreError NODE_UNKNOWN, NODE_AMBIGUOUS
 */
async function certificateHolder(
  word: string,
  certificates: readonly CertificateView[],
  client: ApiClient,
): Promise<string> {
  if (certificates.some(({ id }) => id === word)) return word;
  return (await findNode(client, word)).id;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The most nodes that a controller is asked for in one page. */
export const largestPage = 1_000;

/** The flags of a page of nodes. */
export interface PageFlags {
  readonly limit?: number;
  /** A name or `NAME/ID`. */
  readonly after?: string;
}

/** Flags that choose among nodes. */
export interface SelectorFlags {
  readonly selector?: readonly string[];
  readonly dc?: readonly string[];
}

type Selectable = Pick<NodeView, "labels" | "dc">;
type LabelTest = (labels: Readonly<Record<string, string>>) => boolean;

/**
 * The nodes that fit all of `-l` (`k=v`, `k!=v`, `k`, `!k`; several by commas or repeated) and one of `--dc`.
 * @throws KcoreError USAGE
 */
export function filterNodes<Node extends Selectable>(
  nodes: readonly Node[],
  { selector = [], dc = [] }: SelectorFlags,
): readonly Node[] {
  const tests = selector.flatMap((text) => text.split(",")).map(labelTest);
  return nodes.filter((node) => tests.every((test) => test(node.labels)) && (dc.length === 0 || dc.includes(node.dc)));
}

function labelTest(term: string): LabelTest {
  const [, not, key = "", operator, value = ""] =
    /^\s*(!)?([A-Za-z0-9][A-Za-z0-9._/-]*)\s*(?:(==?|!=)\s*([^\s=!]*))?\s*$/.exec(term) ?? [];
  if (key === "" || (not !== undefined && operator !== undefined))
    throw usageError(`“${term}” is no label selector`, "key=value, key!=value, key or !key; several with commas");
  if (operator === undefined) return (labels) => Object.hasOwn(labels, key) === (not === undefined);
  const isWanted = operator !== "!=";
  return (labels) => ((Object.hasOwn(labels, key) ? labels[key] : undefined) === value) === isWanted;
}
