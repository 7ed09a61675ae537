import { statfs } from "node:fs/promises";
import { drawGauges, type Gauge } from "#base/gauges.ts";
import { updatesFolder } from "#updater/files.ts";
import { readAccepted, type Accepted } from "#updater/journal.ts";
import { readStatusFile, type AgentStatus } from "./status-file.ts";

/** The findings behind a node's metrics. */
export interface MetricSources {
  /** `status.json`: the agent's part, and the part of the last run. */
  readonly status: {
    readonly agent?: Partial<AgentStatus>;
    readonly run?: string;
    readonly state?: string;
    readonly updated?: string;
  };
  /** The updater's last report. */
  readonly report: Accepted["report"];
  /** The file system of the state folder, in bytes. */
  readonly disk: { readonly size: number; readonly free: number } | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The outcomes with which a run ends on a node (`k_end` of the runner). */
const runOutcomes = ["done", "failed", "interrupted", "abandoned", "full"];

/** Reads the metrics of the node whose state folder this is. */
export async function readMetrics(stateDir: string, statusFile: string, now: number): Promise<string> {
  const [status, accepted, disk] = await Promise.all([
    readStatusFile(statusFile),
    readAccepted(updatesFolder(stateDir)),
    statfs(stateDir).catch(() => undefined),
  ]);
  return drawMetrics({
    status,
    report: accepted?.report,
    disk: disk && { size: disk.blocks * disk.bsize, free: disk.bavail * disk.bsize },
    now,
  });
}

/** A node's metrics in Prometheus' text format, without those that the sources do not tell. */
export function drawMetrics({ status, report, disk, now }: MetricSources): string {
  const { agent = {}, run = "", state = "", updated = "" } = status;
  const isOver = runOutcomes.includes(state);
  const isReady = agent.state === "running" && agent.nodeStatus === "ready";
  const info = { node_id: agent.nodeId ?? "", dc: agent.dc ?? "", version: agent.version ?? "" };
  const update = { update: report?.fence.name ?? "", state: report?.state ?? "" };
  return drawGauges([
    gauge("info", "Always 1.", 1, info),
    gauge("ready", "Whether a controller said at the last heartbeat that the node is ready.", Number(isReady)),
    gauge("healthy", "Whether the node finds itself in order.", agent.health && Number(agent.health.ok)),
    gauge("contact_age_seconds", "Seconds since the last answered heartbeat.", -secondsTo(agent.lastHeartbeat, now)),
    gauge("certificate_seconds_left", "Seconds left of the certificate.", secondsTo(agent.certificateExpires, now)),
    gauge("disk_size_bytes", "Size of the file system of the state folder.", disk?.size),
    gauge("disk_free_bytes", "Free bytes of the file system of the state folder.", disk?.free),
    gauge(
      "last_run_end_timestamp_seconds",
      "End of the last run, if it has ended.",
      isOver ? secondsTo(updated, 0) : NaN,
    ),
    gauge("last_run_failed", "Whether the last run on the node failed.", isOver ? Number(state !== "done") : NaN, {
      run,
    }),
    gauge("update_state", "Always 1; the updater's last report.", report && 1, update),
  ]);
}

function gauge(
  name: string,
  help: string,
  value: number | undefined,
  labels: Readonly<Record<string, string>> = {},
): Gauge {
  const isKnown = value !== undefined && Number.isFinite(value);
  return [`kcore_agent_${name}`, help, isKnown ? [[labels, value]] : []];
}

/** The seconds from `now` to an ISO time; NaN without one. */
function secondsTo(time: string | undefined, now: number): number {
  return (Date.parse(time ?? "") - now) / 1000;
}
