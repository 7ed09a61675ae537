import { spawnSync } from "node:child_process";
import { expect } from "chai";
import { howToRepeat, partOf, sliceBase } from "#support/slice.ts";
import { startCluster, type Cluster } from "../../checker/controllers.ts";
import { chapters } from "../../checker/episodes.ts";
import type { Violation } from "../../checker/judge.ts";
import { Life, runEpisode } from "../../checker/run-episode.ts";

// A slice of `npm run test:checker`: one of its 59 faults of each kind, others with each commit.
const faults = Object.values(chapters).flatMap((kind) => partOf(kind, kind.length));

/** The violations without late agreement, which a busy machine causes. */
function withoutLateness(violations: readonly Violation[]): readonly Violation[] {
  return violations.filter(({ rule }) => rule !== "slow");
}

describe("the checker's independent model finds no violation when", () => {
  let cluster: Cluster | undefined;
  const life = new Life();

  before(async function () {
    const hasNamespaces = spawnSync("unshare", ["--net", "--mount", "true"]).status === 0;
    if (process.getuid?.() === 0 && hasNamespaces) {
      cluster = await startCluster();
      return;
    }
    console.log("      left out: hosts of their own need root, and namespaces for network and mounts");
    this.skip();
  });

  after(() => cluster?.close());

  for (const [index, fault] of faults.entries())
    it(fault.name, async () => {
      const episode = { fault, episode: index + 1, seed: sliceBase(), lastsMs: 2_000 };
      const { violations, acknowledged } = await runEpisode(cluster as Cluster, life, episode);
      expect(withoutLateness(violations), howToRepeat()).to.deep.equal([]);
      expect(acknowledged).to.be.greaterThan(0);
    });
});
