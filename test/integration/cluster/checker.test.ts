import { expect } from "chai";
import { startCluster, type Cluster } from "../../checker/controllers.ts";
import { chapters } from "../../checker/episodes.ts";
import { Life, runEpisode } from "../../checker/run-episode.ts";

/** A slice of `npm run test:checker`, which has all 59 of them and V1 to V6. */
const slice = [
  "the datacenters are cut off from each other",
  "the line between the datacenters flaps fast",
  "kill -9 of one of each datacenter",
  "the disk of 3 fails (EIO)",
  "the folder of 2 is put back",
];

describe("the checker, with a client, a model and a judge of its own", () => {
  const life = new Life();
  let cluster: Cluster | undefined;

  before(async function () {
    if (process.getuid?.() !== 0) this.skip();
    cluster = await startCluster();
  });
  after(() => cluster?.close());

  for (const [index, fault] of Object.values(chapters)
    .flat()
    .filter(({ name }) => slice.includes(name))
    .entries())
    it(`finds all as promised when ${fault.name}`, async () => {
      const episode = { fault, episode: index + 1, seed: 1, lastsMs: 2_000 };
      const { violations, acknowledged } = await runEpisode(cluster as Cluster, life, episode);
      expect(violations).to.deep.equal([]);
      expect(acknowledged).to.be.greaterThan(20);
    });
});
