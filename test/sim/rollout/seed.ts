import { withBackgroundFaults } from "../background-faults.ts";
import { Violation } from "../violation.ts";
import type { SeedResult } from "../seed.ts";
import { undisturbed, type RolloutSwarm } from "./swarm.ts";
import { RolloutWorld, type Kill } from "./world.ts";

/** Runs one seed of the rollouts: found, disturb, heal, check. */
export async function runRolloutSeed(
  seed: number,
  swarm?: Partial<RolloutSwarm>,
  kill?: Kill,
): Promise<SeedResult & { readonly writes: number }> {
  const world = new RolloutWorld(seed, swarm, kill);
  let failure: string | undefined;
  let convergedAfter = 0;
  try {
    await withBackgroundFaults(async () => {
      await world.found();
      await world.disturb();
      const healed = world.scheduler.now;
      await world.heal();
      convergedAfter = world.scheduler.now - healed;
      world.check();
    });
  } catch (error) {
    failure = error instanceof Violation ? error.message : String((error as Error).stack);
  }
  const { scheduler, figures, writes } = world;
  return {
    seed,
    failure,
    convergedAfter,
    writes,
    trace: failure ?? world.trace(),
    figures: { ...figures, writes, events: scheduler.executed, virtualMs: Math.round(scheduler.now) },
  };
}

/**
 * Kills the owner at its writes. A first run counts the writes. For each write, two more runs kill the owner, right before the write is durable
 * and right after. Every second time the owner starts again; otherwise another controller takes over. At most `mostKills` writes are tried, at
 * equal distances; by default all.
 */
export async function runKills(seed: number, mostKills = Infinity): Promise<SeedResult> {
  const { writes, ...whole } = await runRolloutSeed(seed, undisturbed);
  if (whole.failure !== undefined) return whole;
  const figures: Record<string, number> = { ...whole.figures };
  const everySo = Math.max(1, Math.ceil(writes / mostKills));
  for (let write = 1 + (seed % everySo); write <= writes; write += everySo)
    for (const when of ["before", "after"] as const) {
      const remedy = (Math.floor(write / everySo) + seed) % 2 === 0 ? "restart" : "takeover";
      const run = await runRolloutSeed(seed, undisturbed, { write, when, remedy });
      for (const [name, value] of Object.entries(run.figures)) figures[name] = (figures[name] ?? 0) + value;
      if (run.failure !== undefined)
        return { ...whole, figures, failure: `killed ${when} write ${write}, then ${remedy}: ${run.failure}` };
    }
  return { ...whole, figures };
}
