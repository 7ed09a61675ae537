import { Violation } from "../violation.ts";
import type { Outcome } from "../seed.ts";
import { undisturbed, type RolloutSwarm } from "./swarm.ts";
import { RolloutWorld, type Kill } from "./world.ts";

/** Runs one seed of the rollouts: begin, disturb, heal, check. */
export async function runRolloutSeed(
  seed: number,
  swarm?: Partial<RolloutSwarm>,
  kill?: Kill,
): Promise<Outcome & { readonly writes: number }> {
  const world = new RolloutWorld(seed, swarm, kill);
  let failure: string | undefined;
  let convergedAfter = 0;
  try {
    await world.found();
    await world.disturb();
    const healed = world.scheduler.now;
    await world.heal();
    convergedAfter = world.scheduler.now - healed;
    world.check();
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

/** The most writes at which one seed has its owner killed. */
const mostKills = 12;

/**
 * The owner is killed at its writes: once without, to count them, then once for each of them, or of many for every so many, right before it is
 * durable and right after. The owner is started again, or another takes over.
 */
export async function runKills(seed: number): Promise<Outcome> {
  const { writes, ...whole } = await runRolloutSeed(seed, undisturbed);
  if (whole.failure !== undefined) return whole;
  const figures: Record<string, number> = { ...whole.figures };
  const everySo = Math.ceil(writes / mostKills);
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
