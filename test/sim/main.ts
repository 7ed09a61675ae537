import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { runCampaign } from "./campaign.ts";

/**
 * npm run test:sim                                       the simulator's tests, by mocha
 * npm run test:sim -- --seeds N [--from S] [--mutant NAME] [--processes N]     a campaign; prints failing seeds
 * npm run test:sim -- --rollout …                        a campaign of rollouts; --kills: kills the owner at each of its writes
 */
const args = process.argv.slice(2);
if (!args.some((arg) => /^--(seeds|from|mutant|rollout|kills)/.test(arg))) {
  const mocha = ["node_modules/mocha/bin/mocha.js", "--timeout", "600000", "test/sim/**/*.test.ts", ...args];
  process.exit(spawnSync(process.execPath, mocha, { stdio: "inherit" }).status ?? 1);
}
const text = { type: "string" } as const;
const flag = { type: "boolean", default: false } as const;
const options = { seeds: text, from: text, mutant: text, processes: text, rollout: flag, kills: flag };
const { values } = parseArgs({ args, options });
const started = Date.now();
const { seeds, failures, figures, converged } = await runCampaign({
  seeds: Number(values.seeds ?? (values.from === undefined ? 1000 : 1)),
  from: Number(values.from ?? 1),
  processes: Number(values.processes ?? 2),
  what: values.kills ? "kills" : values.rollout ? "rollouts" : "replicas",
  ...(values.mutant === undefined ? {} : { mutant: values.mutant }),
});
for (const { seed, failure } of failures) console.log(`seed ${seed}: ${failure}`);
const at = (share: number): number => converged[Math.floor(share * (converged.length - 1))] ?? 0;
const seconds = (Date.now() - started) / 1000;
console.log(JSON.stringify(figures));
console.log(`converged after healing: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, at most ${at(1)} ms`);
console.log(
  `${seeds} seeds, ${failures.length} failed, ${seconds.toFixed(0)} s (${(seeds / seconds).toFixed(1)} a second)`,
);
process.exit(failures.length > 0 ? 1 : 0);
