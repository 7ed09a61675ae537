import { parseArgs } from "node:util";
import { habits } from "./liar.ts";
import { runSeed } from "./world.ts";

/** `node test/hostile/main.ts [--seeds N] [--from SEED] [--only HABIT,HABIT]`: a campaign in the simulator's world; seeds that fail are told with their habits. */
const text = { type: "string" } as const;
const { values } = parseArgs({ options: { seeds: text, from: text, only: text } });
const from = Number(values.from ?? 1);
const count = Number(values.seeds ?? (values.from === undefined ? 1_000 : 1));
const began = performance.now();
const only =
  values.only === undefined ? undefined : new Set(habits.filter((habit) => values.only?.split(",").includes(habit)));
let failed = 0;
for (let seed = from; seed < from + count; seed++) {
  const { failures, habits, acknowledged, lies, agreedMs } = await runSeed(seed, only);
  if (failures.length === 0) continue;
  failed++;
  console.log(
    `seed ${seed} (${habits.join(", ")}; ${lies} lies, ${acknowledged} writes, agreed after ${agreedMs ?? "never"}):`,
  );
  for (const failure of failures.slice(0, 4)) console.log(`  ${failure}`);
}
console.log(`${count} seeds, ${failed} failed, ${Math.round((performance.now() - began) / 1000)} s`);
process.exitCode = failed > 0 ? 1 : 0;
