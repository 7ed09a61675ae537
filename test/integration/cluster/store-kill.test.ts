import { expect } from "chai";
import { createTestCluster } from "../../support/cluster.ts";
import { killController, killWriters } from "../../support/kill-loop.ts";
import { seededRandom } from "../../support/random.ts";
import { makeTempDir } from "../../support/temp-dir.ts";

describe("the store of a process that is killed", () => {
  it("loses nothing acknowledged in 30 kills at any moment", async () => {
    const dir = await makeTempDir("kill");
    try {
      const { acknowledged } = await killWriters({ folder: `${dir.path}/db`, kills: 30, random: seededRandom(7) });
      expect(acknowledged).to.be.greaterThan(1000);
    } finally {
      await dir.remove();
    }
  });

  it("loses nothing that a real controller acknowledged, in 10 kills while operators write", async () => {
    const cluster = await createTestCluster();
    try {
      const { acknowledged } = await killController({ cluster, kills: 10, random: seededRandom(11) });
      expect(acknowledged).to.be.greaterThan(10);
    } finally {
      await cluster.remove();
    }
  });
});
