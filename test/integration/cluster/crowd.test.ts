import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { Agent, request } from "node:https";
import { connect } from "node:tls";
import { expect } from "chai";
import { parseEndpoint } from "#api/endpoint.ts";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { nodeCredentials, startController } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";

/** Milliseconds: a client that waited this long for its handshake may be reset, and tries again. */
const patience = 4_000;
const givenUp: Answer = { status: 0, retryAfter: undefined };

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

describe("many clients at one controller", () => {
  let cluster: TestCluster;
  let controller: TestController;

  before(async () => {
    cluster = await createTestCluster();
    controller = await startController(cluster, { process: true });
  });
  after(async () => {
    await controller?.end();
    await cluster?.remove();
  });

  const ask = (agent: Agent | false): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const options = { ...parseEndpoint(controller.endpoint), ...cluster.operator, path: "/healthz", agent };
      const sent = request(options, (response) => {
        response.resume();
        const { statusCode = 0, headers } = response;
        response.once("end", () => resolve({ status: statusCode, retryAfter: headers["retry-after"] }));
        response.once("error", reject);
      });
      const since = performance.now();
      sent.once("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "ECONNRESET" && performance.now() - since >= patience) resolve(givenUp);
        else reject(error);
      });
      sent.end();
    });

  it("S-17: 256 clients of one address that reconnect for each call are all answered, and none is reset early", async () => {
    const client = async (): Promise<void> => {
      for (let answered = 0; answered < 3;) {
        const { status } = await ask(false);
        expect(status).to.be.oneOf([200, givenUp.status]);
        if (status === 200) answered++;
      }
    };
    await Promise.all(Array.from({ length: 256 }, client));
  });

  it("S-17: one node's key holds at most 16 idle connections, and others are served", async () => {
    const node = nodeCredentials(cluster, randomUUID());
    const { host, port } = parseEndpoint(controller.endpoint);
    let open = 0;
    const sockets = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const socket = connect({ ...node, host, port, ALPNProtocols: ["http/1.1"] });
        socket.once("close", () => open--).on("error", () => undefined);
        await once(socket, "secureConnect");
        open++;
        return socket;
      }),
    );
    try {
      await eventually(() => open === 16);
      expect((await ask(false)).status).to.equal(200);
      expect(open).to.equal(16);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  it("S-17: a key with too many connections is refused with a time to retry", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: Infinity });
    try {
      const answers: Answer[] = [];
      for (let round = 1; round <= 3; round++)
        answers.push(...(await Promise.all(Array.from({ length: 180 * round }, () => ask(agent)))));
      const slow = answers.filter((answer) => answer === givenUp).length;
      const refused = answers.filter((answer) => answer.status !== 200 && answer !== givenUp);
      expect(refused.length).to.be.within(28 - slow, 60);
      expect(new Set(refused.map(({ status, retryAfter }) => `${status} ${retryAfter}`))).to.deep.equal(
        new Set(["429 1"]),
      );
    } finally {
      agent.destroy();
    }
  });
});
