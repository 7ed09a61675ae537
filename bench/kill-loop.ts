import { killWriters } from "#support/kill-loop.ts";
import { seededRandom } from "#support/random.ts";
import { makeTempDir } from "#support/temp-dir.ts";

/** Kills a writing process so many times (1,000 unless told otherwise): `node bench/kill-loop.ts [KILLS] [SEED]`. */
const [kills = 1000, seed = 1] = process.argv.slice(2).map(Number);
const dir = await makeTempDir("kill-loop");
try {
  const result = await killWriters({ folder: `${dir.path}/db`, kills, random: seededRandom(seed) });
  console.log(`${result.kills} kills, ${result.acknowledged} writes acknowledged, 0 lost`);
} finally {
  await dir.remove();
}
