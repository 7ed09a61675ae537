import { mutants } from "./mutants.ts";
import { plant } from "./plant.ts";
import { rolloutMutants } from "./rollout/mutants.ts";
import type { SeedResult } from "./seed.ts";

/** One process of a campaign: `worker.ts FROM COUNT STEP MUTANT|- FIRST|ALL WHAT`. Prints a Campaign as one line of JSON. */
const [from = "1", count = "100", step = "1", mutant = "-", until = "ALL", what = "replicas"] = process.argv.slice(2);
if (mutant !== "-") plant(mutant);
const run = await runnerOf(what);

async function runnerOf(name: string): Promise<(seed: number) => SeedResult | Promise<SeedResult>> {
  if (name === "replicas") {
    const { runSeed } = await import("./seed.ts");
    return (seed) => runSeed(seed, mutants[mutant]?.swarm);
  }
  const { runKills, runRolloutSeed } = await import("./rollout/seed.ts");
  return name === "kills" ? runKills : (seed) => runRolloutSeed(seed, rolloutMutants[mutant]?.swarm);
}

// A simulated cluster throws many refusals, whose cost is mostly the stack.
Error.stackTraceLimit = 4;
const failures: { seed: number; failure: string }[] = [];
const figures: Record<string, number> = {};
const converged: number[] = [];
let seeds = 0;
for (let index = 0; index < Number(count); index++) {
  const seed = Number(from) + index * Number(step);
  const outcome = await run(seed);
  seeds++;
  for (const [name, value] of Object.entries(outcome.figures)) figures[name] = (figures[name] ?? 0) + value;
  if (outcome.failure === undefined) converged.push(outcome.convergedAfter);
  else {
    failures.push({ seed, failure: outcome.failure.slice(0, 2_000) });
    if (until === "FIRST") break;
  }
}
console.log(JSON.stringify({ seeds, failures, figures, converged }));
