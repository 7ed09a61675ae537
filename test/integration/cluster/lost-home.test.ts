import { mkdir, readdir } from "node:fs/promises";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createServer } from "node:tls";
import { expect } from "chai";
import { pkiCreateCluster } from "#actions/pki-create-cluster.ts";
import { actionContext } from "#support/action-context.ts";
import { issueTo } from "#support/cluster.ts";
import { ClusterSite } from "#support/cluster-site.ts";
import type { Ended } from "#support/kcore.ts";
import { codeOf } from "#support/rejection.ts";
import { nodeEntry } from "#support/runs.ts";

describe("a bastion that lost its ~/.kcore", () => {
  let site: ClusterSite;
  let home: string;
  before(async () => {
    site = await ClusterSite.open(1);
    home = join(site.project.path, "new-home");
    const [, port] = site.at(0).endpoint.split(":");
    site.project.write({
      "project/roster/controllers.yaml": `nodes:\n  n1: { address: 127.0.0.11, roles: [worker], vars: { joinControllers: ["127.0.0.11:${port}"] } }\n`,
    });
    await mkdir(home);
  });
  after(() => site.stop());

  const call = (...words: readonly string[]): Promise<Ended> => site.project.call(words, { KCORE_HOME: home });
  const create = (context: string, ...more: readonly string[]): Promise<Ended> =>
    call("create", "cluster", "--context", context, "--passphrase-file", site.passphraseFile, ...more);

  it("C7: makes no second CA while a controller of the roster answers, whatever the new cluster's name", async () => {
    for (const context of ["lab", "prod"]) {
      const refused = await create(context);
      expect(refused.code, refused.stderr).to.equal(2);
      expect(refused.stderr)
        .to.contain(`${site.at(0).endpoint} answers as a controller of the cluster “lab”`)
        .and.to.contain("kcore cluster restore FILE")
        .and.to.contain("[CLUSTER_EXISTS]");
    }
    expect(await readdir(home)).to.deep.equal([]);
    expect((await create("prod", "--force")).code).to.equal(0);
  });

  it("C7: takes a server that is no controller for none", async () => {
    const { cert, key } = issueTo(site.cluster.authority, "node", "6f1c2a52-0000-4000-8000-000000000000");
    const server = createServer({ cert, key }).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const context = actionContext({ home, context: "third", givenPassphrase: "", nodes: new Map() });
      const endpoint = `127.0.0.1:${(server.address() as AddressInfo).port}`;
      const { changed } = (await pkiCreateCluster.plan({ controller: endpoint }, context)) as { changed: boolean };
      expect(changed).to.equal(true);
    } finally {
      server.close();
    }
  });

  it("C7: an orchestration makes none either", async () => {
    const n1 = { ...nodeEntry("n1"), vars: { joinControllers: [site.at(0).endpoint] } };
    const context = actionContext({ home, context: "third", nodes: new Map([["n1", n1]]) });
    expect(await codeOf(pkiCreateCluster.plan({}, context))).to.equal("CLUSTER_EXISTS");
    expect(await codeOf(pkiCreateCluster.run({}, context))).to.equal("CLUSTER_EXISTS");
  });
});
