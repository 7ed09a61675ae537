import type { PeerView, ReplicationView } from "#api/controller-schemas.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { openCluster, type Cluster } from "../cluster/open-cluster.ts";
import type { ClusterFlags } from "../options.ts";
import type { Column } from "#tui/columns/column.ts";
import { contactColumn, controllerName, linkColumns } from "#tui/columns/controller-columns.ts";
import { drawTable } from "../terminal/format-table.ts";
import { printResult } from "../terminal/format-result.ts";

/** One controller's replication status, or the reason why there is none. */
interface Finding {
  readonly endpoint: string;
  readonly healthy: boolean;
  readonly status?: ReplicationView;
  readonly error?: string;
}

type Flags = ClusterFlags & { readonly output: "table" | "json" | "yaml"; readonly requireHealthy?: boolean };

/** `kcore get replication-status`: asks every controller that the context or `-s` names. */
export async function showReplicationStatus({ output, requireHealthy = false, ...flags }: Flags): Promise<void> {
  const cluster = await openCluster(flags);
  const findings = await Promise.all(cluster.endpoints.map((endpoint) => askStatus(endpoint, cluster)));
  printResult(findings, output, () => draw(findings));
  if (requireHealthy && findings.some(({ healthy }) => !healthy)) process.exitCode = exitCodes.failed;
}

async function askStatus(endpoint: string, { ask }: Cluster): Promise<Finding> {
  try {
    const status = await ask((client) => client.call("replicationStatus", {}), { endpoints: [endpoint] });
    return { endpoint, healthy: status.healthy, status };
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    return { endpoint, healthy: false, error: error.message };
  }
}

/** A peer as the controller at the endpoint sees it. */
interface Link extends PeerView {
  readonly endpoint: string;
}

const columns: readonly Column<Link>[] = [
  { title: "CONTROLLER", cell: ({ endpoint }) => endpoint },
  { title: "PEER", cell: controllerName },
  { title: "DC", cell: ({ dc }) => dc },
  { title: "STATE", cell: ({ state }) => state },
  ...linkColumns,
  contactColumn,
];

function draw(findings: readonly Finding[]): string {
  if (findings.length === 0) return "no controller yet: kcore orchestrate deploy_node NODE\n";
  const links = findings.flatMap(({ endpoint, status }) =>
    (status?.peers ?? []).map((peer): Link => ({ ...peer, endpoint })),
  );
  const table = links.length === 0 ? "" : `${drawTable(columns, links, { wide: false, now: Date.now() })}\n`;
  return table + findings.map(summary).join("");
}

function summary({ endpoint, healthy, status, error }: Finding): string {
  if (!status) return `${endpoint}: unhealthy: ${error ?? "it does not answer"}\n`;
  const { registers, tombstones, quarantined, conflicts, problems, alarms, readOnly } = status;
  const counts = `${registers} registers, ${tombstones} tombstones, ${quarantined} quarantined, ${conflicts} conflicts`;
  const lines = [...problems, ...(readOnly === undefined ? [] : [`writes are refused: ${readOnly}`])];
  const notes = [...lines, ...alarms.map(({ code, message }) => `${message} [${code}]`)];
  return `${endpoint}: ${healthy ? "healthy" : "unhealthy"}: ${counts}\n${notes.map((line) => `  ${line}\n`).join("")}`;
}
