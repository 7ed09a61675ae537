import { createTestCluster } from "#support/cluster.ts";
import { killController, killWriters } from "#support/kill-loop.ts";
import type { KillCount } from "#support/kill-loop.ts";
import { seededRandom } from "#support/random.ts";
import { makeTempDir } from "#support/temp-dir.ts";

/**
 * Kills a process that writes so many times (1,000 unless told otherwise), with SIGKILL at any moment:
 * `node bench/kill-loop.ts store|controller [KILLS] [SEED]`. Ends with an error when anything acknowledged is lost.
 */
const [what, ...numbers] = process.argv.slice(2);
const [kills = 1000, seed = 1] = numbers.map(Number);
const random = seededRandom(seed);
const run = { store: killStore, controller: killOne }[String(what)];
if (!run) throw new Error("usage: node bench/kill-loop.ts store|controller [KILLS] [SEED]");
const onKill = ({ kills: done, acknowledged }: KillCount): void => {
  if (done > 0 && done % 50 === 0) console.error(`${done} of ${kills} kills, ${acknowledged} writes acknowledged`);
};
const result = await run();
console.log(`${result.kills} kills, ${result.acknowledged} writes acknowledged, 0 lost`);

async function killStore(): ReturnType<typeof killWriters> {
  const dir = await makeTempDir("kill-loop");
  try {
    return await killWriters({ folder: `${dir.path}/db`, kills, random, onKill });
  } finally {
    await dir.remove();
  }
}

async function killOne(): ReturnType<typeof killController> {
  const cluster = await createTestCluster();
  try {
    return await killController({ cluster, kills, random, onKill });
  } finally {
    await cluster.remove();
  }
}
