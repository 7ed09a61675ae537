import { withBackgroundFaults } from "./background-faults.ts";
import type { Swarm } from "./swarm.ts";
import { World } from "./world.ts";

/** The result of one seed; `trace` is equal for equal runs. */
export interface SeedResult {
  readonly seed: number;
  readonly failure: string | undefined;
  readonly trace: string;
  readonly convergedAfter: number;
  readonly figures: Readonly<Record<string, number>>;
}

/** The time limit for convergence in virtual ms: mostly a wait for stamps up to 30 s ahead. */
const bound = 90_000;

/** Runs one seed: found, disturb, heal, converge, check; then the cluster must take writes again. */
export async function runSeed(seed: number, swarm?: Partial<Swarm>): Promise<SeedResult> {
  const world = new World(seed, swarm);
  let failure: string | undefined;
  let convergedAfter = 0;
  try {
    await withBackgroundFaults(async () => {
      await world.start();
      await world.disturb();
      await world.heal();
      convergedAfter = await world.converge(bound);
      world.check();
    });
  } catch (error) {
    failure =
      error instanceof Error ? (error.name === "Violation" ? error.message : String(error.stack)) : String(error);
  }
  const { scheduler, network, history, figures } = world;
  return {
    seed,
    failure,
    convergedAfter,
    trace: failure ?? world.trace(),
    figures: {
      ...figures,
      acked: history.ackedCount,
      conflicts: history.conflictCount,
      events: scheduler.executed,
      messages: network.sent,
      dropped: network.dropped,
      virtualMs: Math.round(scheduler.now),
    },
  };
}
