import { PassThrough } from "node:stream";
import { expect } from "chai";
import { createLog } from "#api/log.ts";
import { openNetwork } from "#controller/transport/network.ts";
import { knowBastionCas } from "#pki/chain.ts";
import { createTestCluster, issueTo, type TestCluster } from "#support/cluster.ts";

describe("the log of replication streams", () => {
  let cluster: TestCluster;
  before(async () => (cluster = await createTestCluster()));
  after(() => cluster.remove());

  it("has streams of peers, but not the controller's connection to its own address each minute", () => {
    let text = "";
    const credentials = issueTo(cluster.authority, "controller", "a");
    const network = openNetwork({
      controllerId: "a",
      cluster: "lab",
      bastion: knowBastionCas(credentials.ca, credentials.cert),
      credentials: () => credentials,
      keyAt: () => undefined,
      log: createLog({ write: (line) => (text += line), clock: Date.now }),
      clock: Date.now,
    });
    const closes: (() => void)[] = [];
    network.attach({
      connected(link) {
        closes.push(() => link.close("SAME_CONTROLLER"));
        return { received: () => undefined, closed: () => undefined };
      },
      dialFailed: () => undefined,
      addressOf: () => undefined,
      isWelcome: () => true,
      onBytes: () => undefined,
    });
    const linesOf = (peer: string): readonly string[] => {
      text = "";
      const socket = Object.assign(new PassThrough(), { setNoDelay: () => socket, setTimeout: () => socket });
      network.accept(peer, "key", socket, Buffer.alloc(0));
      closes.pop()?.();
      return text
        .split("\n")
        .flatMap((line) => (line === "" ? [] : [(JSON.parse(line) as { message: string }).message]));
    };
    expect(linesOf("b")).to.deep.equal(["a replication stream begins", "a replication stream ends"]);
    expect(linesOf("a")).to.deep.equal([]);
    network.close();
  });
});
