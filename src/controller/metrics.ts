import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { ControllerCluster } from "./controller-cluster.ts";
import type { ControllerState } from "./controller-state.ts";
import type { PeerStatus } from "./replica/replica.ts";

export type Metrics = ReturnType<typeof createMetrics>;

/** A controller's metrics in Prometheus' text format, in a registry of its own, not in prom-client's global one. */
export function createMetrics(
  { self, replica }: Pick<ControllerState, "self" | "replica">,
  { nodes, certificateEnds, isReady }: Pick<ControllerCluster, "nodes" | "certificateEnds" | "isReady">,
  { clock, connections }: { readonly clock: () => number; readonly connections: () => number },
) {
  const registry = new Registry();
  registry.setDefaultLabels({ controller: self.controllerId, dc: self.dc });
  collectProcessMetrics(registry);
  const registers = [registry];
  const gauge = (name: string, help: string, labelNames: readonly string[], read: (gauge: Gauge) => void): void => {
    new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers,
      collect() {
        this.reset();
        read(this as Gauge);
      },
    });
  };
  const requests = new Histogram({
    name: "kcore_api_request_seconds",
    help: "Time to answer a request, by method and status.",
    labelNames: ["method", "status"],
    buckets: [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
    registers,
  });
  const refused = new Counter({
    name: "kcore_api_connections_refused_total",
    help: "TLS connections that were refused.",
    registers,
  });
  const traffic = new Counter({
    name: "kcore_replication_bytes_total",
    help: "Bytes of replication streams, before TLS.",
    labelNames: ["direction"],
    registers,
  });
  gauge("kcore_build_info", "Always 1.", ["version"], (it) => it.set({ version: self.version }, 1));
  gauge("kcore_ready", "Whether this controller serves.", [], (it) => it.set(Number(isReady())));
  gauge("kcore_read_only", "Whether writes are refused.", [], (it) => {
    const isReadOnly = replica.status().readOnly !== undefined || replica.isUnheard();
    it.set(Number(isReadOnly || replica.turnedOut() !== undefined));
  });
  gauge("kcore_nodes", "Nodes, by status.", ["status"], (it) => {
    for (const [status, count] of nodes.countByStatus()) it.set({ status }, count);
  });
  gauge("kcore_registers", "Registers that are held, tombstones included.", [], (it) =>
    it.set(replica.status().registers),
  );
  gauge("kcore_tombstones", "Deletions that are kept until every controller has them.", [], (it) =>
    it.set(replica.status().tombstones),
  );
  gauge("kcore_conflicts", "Open conflicts.", [], (it) => it.set(replica.conflicts().length));
  gauge("kcore_connections", "Open connections.", [], (it) => it.set(connections()));
  gauge("kcore_alarms", "Warnings for an operator, by code.", ["code"], (it) => {
    for (const { code } of replica.status().alarms) it.inc({ code });
  });
  gauge(
    "kcore_certificate_seconds_left",
    "Seconds left of each certificate that this controller needs.",
    ["certificate"],
    (it) => {
      for (const [certificate, { notAfter }] of certificateEnds.all())
        it.set({ certificate }, (notAfter.getTime() - clock()) / 1000);
    },
  );
  for (const [name, help, read] of peerGauges)
    gauge(name, help, ["peer"], (it) => {
      for (const peer of replica.status().peers) {
        const value = read(peer);
        if (value !== undefined && Number.isFinite(value)) it.set({ peer: peer.id }, value);
      }
    });
  return {
    text: (): Promise<string> => registry.metrics(),
    answered: (method: string, status: number, ms: number): void =>
      requests.observe({ method, status: String(status) }, ms / 1000),
    refusedConnection: (): void => refused.inc(),
    bytes: (direction: "in" | "out", bytes: number): void => traffic.inc({ direction }, bytes),
  };
}

/**
 * prom-client's metrics of a process, without the statistics of the event loop's lag: they need a timer that wakes an
 * idle process a hundred times a second. The loop's utilisation since the last scrape, which costs nothing, replaces
 * them.
 */
function collectProcessMetrics(registry: Registry): void {
  // The timer of the removed statistics wakes the process once a day.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: dayMs });
  for (const part of ["min", "max", "mean", "stddev", "p50", "p90", "p99"])
    registry.removeSingleMetric(`nodejs_eventloop_lag_${part}_seconds`);
  let since = performance.eventLoopUtilization();
  new Gauge({
    name: "kcore_event_loop_busy_ratio",
    help: "Share of the time since the last scrape in which the event loop was busy.",
    registers: [registry],
    collect() {
      const until = performance.eventLoopUtilization();
      this.set(performance.eventLoopUtilization(until, since).utilization);
      since = until;
    },
  });
}

const dayMs = 86_400_000;

const peerGauges: readonly (readonly [string, string, (peer: PeerStatus) => number | undefined])[] = [
  ["kcore_peer_connected", "Whether the stream to the peer stands.", ({ state }) => Number(state === "connected")],
  ["kcore_peer_behind", "Transactions that the peer has not confirmed.", ({ behind }) => behind],
  ["kcore_peer_ahead", "Transactions that the peer has and this controller has not.", ({ ahead }) => ahead],
  [
    "kcore_peer_rtt_seconds",
    "Round trip to the peer, smoothed.",
    ({ rttMs }) => (rttMs === undefined ? undefined : rttMs / 1000),
  ],
  [
    "kcore_peer_clock_offset_seconds",
    "The peer's clock minus this controller's.",
    ({ offsetMs }) => (offsetMs === undefined ? undefined : offsetMs / 1000),
  ],
];
