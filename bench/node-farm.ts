import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { writeFarmProject } from "#support/farm-project.ts";
import { startFarm } from "#support/node-farm.ts";

/**
 * `node bench/node-farm.ts 1000 --project DIR`: that many simulated nodes behind real SSH on this machine, and a project
 * whose roster they are. Stays until Ctrl-C; watch it from another terminal.
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    project: { type: "string", default: "farm" },
    pace: { type: "string", default: "150" },
    "fail-every": { type: "string", default: "0" },
    "slow-every": { type: "string", default: "0" },
  },
});
const farm = await startFarm(Number(positionals[0] ?? "100"), {
  pace: Number(values.pace),
  failEvery: Number(values["fail-every"]),
  slowEvery: Number(values["slow-every"]),
});
const folder = resolve(values.project);
writeFarmProject(folder, farm);
console.log(`${farm.nodes.length} nodes on port ${farm.port}. In another terminal:
  cd ${folder} && kcore state apply fleet --on '*' --concurrency 200
Ctrl-C ends them.`);
process.once("SIGTERM", () => process.exit(0));
