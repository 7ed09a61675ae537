import { spawnSync } from "node:child_process";
import { expect } from "chai";
import { howToRepeat, partOf, sliceBase } from "#support/slice.ts";
import { startCluster, type Cluster } from "../../checker/controllers.ts";
import { chapters } from "../../checker/episodes.ts";
import type { Violation } from "../../checker/judge.ts";
import { Life, runEpisode } from "../../checker/run-episode.ts";
import { scenarios } from "../../checker/scenarios.ts";

// A slice of `npm run test:checker`, which has all 59 faults and V1 to V6: one fault of each kind, others with each commit.
const faults = Object.values(chapters).flatMap((kind) => partOf(kind, kind.length));
const played = partOf(scenarios, scenarios.length);

/** The time until agreement does not count on a busy machine. */
function wrong(violations: readonly Violation[]): readonly Violation[] {
  return violations.filter(({ rule }) => rule !== "slow");
}

describe("the checker, with a client, a model and a judge of its own", () => {
  let cluster: Cluster | undefined;
  const end = async (): Promise<void> => {
    await cluster?.close();
    cluster = undefined;
  };

  before(function () {
    const hasNamespaces = spawnSync("unshare", ["--net", "--mount", "true"]).status === 0;
    if (process.getuid?.() === 0 && hasNamespaces) return;
    console.log("      left out: hosts of their own need root, and namespaces for network and mounts");
    this.skip();
  });

  describe("finds all as promised, on one cluster, when", () => {
    const life = new Life();
    before(async () => {
      cluster = await startCluster();
    });
    after(end);

    for (const [index, fault] of faults.entries())
      it(fault.name, async () => {
        const episode = { fault, episode: index + 1, seed: sliceBase(), lastsMs: 2_000 };
        const { violations, acknowledged } = await runEpisode(cluster as Cluster, life, episode);
        expect(wrong(violations), howToRepeat()).to.deep.equal([]);
        expect(acknowledged).to.be.greaterThan(0);
      });
  });

  describe("finds all as promised, on a cluster of its own, in", () => {
    beforeEach(async () => {
      cluster = await startCluster();
    });
    afterEach(end);

    for (const { name, run } of played)
      it(name, async () => {
        expect(wrong(await run(cluster as Cluster)), howToRepeat()).to.deep.equal([]);
      });
  });
});
