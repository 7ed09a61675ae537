import { once } from "node:events";
import { chmod, readFile } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { checkClockOnce } from "#actions/cluster-context.ts";
import { challengeFor } from "#actions/generated-key.ts";
import { pkiIssueNode } from "#actions/pki-issue-node.ts";
import { changeControllers } from "#pki/contexts.ts";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";
import { actionContext } from "#support/action-context.ts";
import { codec, createTestCluster, issueTo, passphrase, type TestCluster } from "#support/cluster.ts";
import { TestProject } from "#support/kcore.ts";
import { codeOf, rejectionOf } from "#support/rejection.ts";
import { nodeEntry } from "#support/runs.ts";

const minute = 60_000;

describe("a bastion whose clock is wrong", () => {
  let cluster: TestCluster;
  const servers: Server[] = [];
  let asked = 0;
  /** The endpoint of a controller whose clock is so many milliseconds behind. */
  const controllerBehind = async (ms: number): Promise<string> => {
    const { ca, cert, key } = issueTo(cluster.authority, "controller", "6f1c2a52-0000-4000-8000-000000000000");
    const server = createServer({ ca, cert, key, requestCert: true, rejectUnauthorized: true }, (_, response) => {
      asked++;
      response.setHeader("date", new Date(Date.now() - ms).toUTCString());
      response.end("{}");
    });
    servers.push(server.listen(0, "127.0.0.1"));
    await once(server, "listening");
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const useControllers = (...endpoints: readonly string[]) =>
    changeControllers({ home: cluster.home, codec }, "lab", () => endpoints);

  before(async () => {
    cluster = await createTestCluster();
  });
  after(async () => {
    for (const server of servers) server.close();
    await cluster.remove();
  });

  it("issues no certificate, and reports both times", async () => {
    const n1 = nodeEntry("n1");
    const given = { passphrase: () => Promise.resolve(passphrase), home: cluster.home, node: n1 };
    const context = actionContext({ ...given, nodes: new Map([["n1", n1]]) });
    const key = generateKey();
    const facts = { spki: publicDer(key).toString("base64"), proof: proveKey(key, challengeFor(n1, context)) };
    const endpoint = await controllerBehind(60 * minute);
    await useControllers(endpoint);
    const issuing = pkiIssueNode.run({ identity: { nodeKey: { facts } }, hosts: [] }, context);
    const { problems, message } = await rejectionOf(issuing);
    expect(problems[0]?.code).to.equal("CLOCK_DIFFERS");
    expect(message).to.match(
      new RegExp(`this machine's clock says \\d{4}-.*Z, that of controller ${endpoint} \\d{4}-.*Z: nothing is signed`),
    );
    // Certificates begin ten minutes early, so smaller differences pass. One controller that agrees is enough; without an answer kcore signs.
    const laterRun = { ...context, runId: "r2" };
    await useControllers(endpoint, await controllerBehind(5 * minute));
    await checkClockOnce(laterRun);
    await useControllers("127.0.0.1:1");
    await checkClockOnce(laterRun);
    await useControllers(await controllerBehind(-60 * minute));
    expect(await codeOf(checkClockOnce(laterRun))).to.equal("CLOCK_DIFFERS");
  });

  it("is checked by one question to each controller a run, however many keys the run opens", async () => {
    const n1 = nodeEntry("n1", { roles: ["controller"] });
    const given = { passphrase: () => Promise.resolve(passphrase), home: cluster.home, node: n1, runId: "r3" };
    const context = actionContext({ ...given, nodes: new Map([["n1", n1]]) });
    const key = generateKey();
    const facts = { spki: publicDer(key).toString("base64"), proof: proveKey(key, challengeFor(n1, context)) };
    await useControllers(await controllerBehind(0));
    asked = 0;
    const identity = { nodeKey: { facts }, controllerKey: { facts }, subCaKey: { facts } };
    await pkiIssueNode.run({ identity, hosts: [] }, context);
    expect(asked).to.equal(1);
  });

  it("rotates no certificate", async () => {
    await useControllers(await controllerBehind(-60 * minute));
    const project = new TestProject();
    try {
      const file = join(project.path, "passphrase");
      project.write({ passphrase: `${passphrase}\n` });
      await chmod(file, 0o600);
      const kept = () =>
        Promise.all(["sub-ca.crt", "kctl.crt"].map((name) => readFile(join(cluster.home, "lab", name))));
      const before = await kept();
      for (const what of ["sub-ca", "certs", "operator"]) {
        const { code, stderr } = await project.call(["rotate", what, "--passphrase-file", file], {
          KCORE_HOME: cluster.home,
        });
        expect(stderr, what).to.contain("[CLOCK_DIFFERS]");
        expect(code, what).to.equal(2);
      }
      expect(await kept()).to.deep.equal(before);
    } finally {
      await project.remove();
    }
  });
});
