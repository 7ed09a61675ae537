import { Violation } from "../violation.ts";
import type { Outcome } from "../seed.ts";
import type { RolloutSwarm } from "./swarm.ts";
import { RolloutWorld, type Kill } from "./world.ts";

/** Runs one seed of the rollouts: begin, disturb, heal, check. */
export function runRolloutSeed(
  seed: number,
  swarm?: Partial<RolloutSwarm>,
  kill?: Kill,
): Outcome & { readonly writes: number } {
  const world = new RolloutWorld(seed, swarm, kill);
  let failure: string | undefined;
  let convergedAfter = 0;
  try {
    world.disturb();
    const healed = world.scheduler.now;
    world.heal();
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
