import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { deliverUpdates } from "#agent/order-delivery.ts";
import { openControllers } from "#api/ask.ts";
import { createLog } from "#api/log.ts";
import type { FailureRecord } from "#rollout/records.ts";
import { UpdateFailure } from "#updater/failure.ts";
import { updatesFolder } from "#updater/files.ts";
import { readStatement } from "#updater/run.ts";
import type { NodeVersion, UpdateStep } from "#updater/strategy.ts";
import { writeCredentials, type TestCluster } from "./cluster.ts";
import { nodeCredentials, recordAt, registrationOf, type TestController } from "./controllers.ts";
import { hangLimit } from "./limit.ts";
import { superviseUpdater } from "./node-updater.ts";

/** The result of a step on a simulated node. */
export type StepAnswer = { readonly ok: true } | { readonly ok: false; readonly failure: FailureRecord };

export interface RolloutNodeOptions {
  readonly hostname: string;
  readonly id?: string;
  readonly dc?: string;
  /** Whether the cluster can update it, by its registration; true by default. */
  readonly canUpdate?: boolean;
  /** Called at each step; a promise holds the node back until it resolves. Every step succeeds by default. */
  readonly carryOut?: (step: UpdateStep) => StepAnswer | Promise<StepAnswer>;
}

/** Milliseconds between two heartbeats. */
const beatMs = 500;
const log = createLog({ write: () => undefined, clock: Date.now });

/**
 * Updatable nodes of a cluster, hundreds of them in one process. The product's agent carries orders to the product's updater, at the first
 * controller that answers; a new version is only a name.
 */
export async function startRolloutNodes(
  cluster: TestCluster,
  controllers: readonly TestController[],
  nodes: readonly RolloutNodeOptions[],
): Promise<() => Promise<void>> {
  const stops = await Promise.all(nodes.map((options) => startNode(cluster, controllers, options)));
  return async () => void (await Promise.all(stops.map((stop) => stop())));
}

async function startNode(
  cluster: TestCluster,
  controllers: readonly TestController[],
  { hostname, id = randomUUID(), dc = "DC1", canUpdate = true, carryOut = () => ({ ok: true }) }: RolloutNodeOptions,
): Promise<() => Promise<void>> {
  const [first] = controllers;
  if (!first) throw new Error("nodes need a controller");
  const credentials = nodeCredentials(cluster, id);
  await recordAt(first, credentials);
  const stateDir = join(cluster.dir, `node-${id}`);
  const tls = await writeCredentials(stateDir, "node", credentials);
  const folder = updatesFolder(stateDir);
  await mkdir(folder, { mode: 0o700 });
  const end = new AbortController();
  const { signal } = end;
  const endpoints = controllers.map(({ endpoint }) => endpoint);
  // Longer than a controller's long poll for a node's next order.
  const options = { endpoints, credentials, signal, clock: Date.now, timeoutMs: hangLimit };
  const [beats, orders] = [openControllers(options), openControllers(options)];
  let present: NodeVersion = { id: `/nix/store/${"0".repeat(32)}-kcore-0.3.0`, version: "0.3.0", generation: 1 };
  // As an agent registers after a restart.
  const register = async (): Promise<void> => {
    const runtime = { id: present.id, generation: present.generation ?? 1, arch: "x86_64", canUpdate };
    const facts = { hostname, dc, version: present.version, runtime };
    await beats.ask((client) => client.call("registerNode", registrationOf(id, facts)));
  };
  const updates = deliverUpdates({ nodeId: id, stateDir, controllers: orders, signal, log, random: Math.random });
  const beat = async (): Promise<void> => {
    while (!signal.aborted) {
      const { concerned = false } = await beats.ask((client) => client.call("heartbeat", { nodeId: id }, { signal }));
      if (concerned) updates.start();
      await sleep(beatMs, undefined, { signal });
    }
  };
  await register();
  const working = Promise.all([
    beat().catch((error: unknown) => {
      if (!signal.aborted) throw error;
    }),
    superviseUpdater({
      folder,
      signal,
      self: { id, hostname, dc },
      verify: (signed) => readStatement(signed, tls),
      present: () => present,
      move: (to) => {
        present = to;
        return register();
      },
      carryOut: async (step) => {
        const answer = await carryOut(step);
        if (!answer.ok) throw new UpdateFailure(answer.failure.kind, answer.failure.message);
      },
    }),
  ]);
  return async () => {
    end.abort();
    await updates.stop();
    await working;
    for (const connections of [beats, orders]) connections.close();
  };
}
