import { expect } from "chai";
import { drawMetrics, type MetricSources } from "#agent/agent-metrics.ts";

const now = Date.parse("2026-11-30T22:00:00Z");
const agent = {
  state: "running",
  nodeId: "4b",
  dc: "DC1",
  version: "1",
  nodeStatus: "ready",
  lastHeartbeat: "2026-11-30T21:59:50Z",
  certificateExpires: "2026-12-01T22:00:00Z",
  health: { ok: true },
} as const;
const ended = { run: "20261130-210000-0001", state: "done", updated: "2026-11-30T21:00:00Z" };
const sources: MetricSources = {
  status: { ...ended, agent },
  report: undefined,
  disk: { size: 100, free: 40 },
  now,
};

/** The samples, by metric, without `kcore_agent_`. */
function samplesOf(changes: Partial<MetricSources> = {}): Readonly<Record<string, string>> {
  const lines = drawMetrics({ ...sources, ...changes }).split("\n");
  const samples = lines.filter((line) => line.startsWith("kcore_agent_"));
  return Object.fromEntries(
    samples.map((line) => [line.slice("kcore_agent_".length, line.lastIndexOf(" ")), line.split(" ").at(-1) ?? ""]),
  );
}

describe("an agent's metrics", () => {
  it("tell readiness, contact, certificate, disk and the last run", () => {
    expect(samplesOf()).to.deep.equal({
      'info{node_id="4b",dc="DC1",version="1"}': "1",
      ready: "1",
      healthy: "1",
      contact_age_seconds: "10",
      certificate_seconds_left: "86400",
      disk_size_bytes: "100",
      disk_free_bytes: "40",
      last_run_end_timestamp_seconds: String(Date.parse(ended.updated) / 1000),
      'last_run_failed{run="20261130-210000-0001"}': "0",
    });
  });

  it("count a node as not ready while no controller answers, whatever the last answer said", () => {
    expect(samplesOf({ status: { agent: { ...agent, state: "connecting" } } })["ready"]).to.equal("0");
    expect(samplesOf({ status: { agent: { ...agent, nodeStatus: "pending" } } })["ready"]).to.equal("0");
  });

  it("tell nothing that no source tells, and no end of a run under way", () => {
    expect(Object.keys(samplesOf({ status: {}, disk: undefined }))).to.deep.equal([
      'info{node_id="",dc="",version=""}',
      "ready",
    ]);
    const running = samplesOf({ status: { ...ended, state: "running", agent } });
    expect(Object.keys(running).filter((name) => name.startsWith("last_run"))).to.deep.equal([]);
  });

  it("count every outcome but done as a failed run, and tell the updater's state", () => {
    for (const state of ["failed", "interrupted", "abandoned", "full"])
      expect(samplesOf({ status: { ...ended, state } })['last_run_failed{run="20261130-210000-0001"}']).to.equal("1");
    const report = { fence: { name: 'a "b"\\' }, state: "failed" } as NonNullable<MetricSources["report"]>;
    expect(samplesOf({ report })['update_state{update="a \\"b\\"\\\\",state="failed"}']).to.equal("1");
  });
});
