import type { NodeUpdateView, UpdateView } from "#api/update-schemas.ts";
import { UpdateSpec } from "#rollout/spec.ts";

/** The present time of the tests' rollouts. */
export const rolloutNow = Date.parse("2026-11-21T12:00:00Z");

function ago(seconds: number): string {
  return new Date(rolloutNow - seconds * 1000).toISOString();
}

/** A node of a rollout, by its number; every second one is in DC2. */
export function rolloutNode(index: number, changes: Partial<NodeUpdateView> = {}): NodeUpdateView {
  const { phase = "pending" } = changes;
  const isDone = phase === "succeeded";
  return {
    id: `6f1c2a52-7c1e-4f0e-9a50-${String(index).padStart(12, "0")}`,
    hostname: `n${String(index).padStart(3, "0")}`,
    dc: index % 2 === 0 ? "DC2" : "DC1",
    roles: ["worker"],
    phase,
    wave: Math.ceil(index / 10),
    ready: true,
    currentVersion: isDone ? "0.4.0" : "0.3.0",
    targetVersion: "0.4.0",
    currentGeneration: isDone ? 2 : 1,
    targetGeneration: 2,
    requiresReboot: false,
    since: ago(30),
    ...changes,
  };
}

/** A rollout of these nodes as a controller reports it. */
export function rolloutView(nodeStatus: readonly NodeUpdateView[], changes: Partial<UpdateView> = {}): UpdateView {
  const count = (phase: string): number => nodeStatus.filter((node) => node.phase === phase).length;
  return {
    name: "release-0-4-0",
    generation: 1,
    phase: "rolling_out",
    approvalStatus: "approved",
    approvalPolicy: "manual",
    target: "kcore 0.4.0",
    strategy: "batch",
    nodes: nodeStatus.length,
    done: count("succeeded"),
    failed: count("failed"),
    owner: { id: "c1", epoch: 1, endpoint: "192.0.2.11:9090", heard: true },
    createdAt: ago(600),
    updatedAt: ago(120),
    hash: "3f9a1c2e77d0".padEnd(64, "0"),
    approvedBy: "operator ann",
    spec: UpdateSpec.parse({ target: { version: "0.4.0" }, selector: { allNodes: true } }),
    signed: { statement: "{}", signature: "", signer: "" },
    takeover: { id: "c1", epoch: 2 },
    waves: [],
    nodeStatus: [...nodeStatus],
    ...changes,
  };
}
