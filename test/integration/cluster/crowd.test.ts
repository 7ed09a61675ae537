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

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

describe("a crowd at a controller", () => {
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
      sent.once("error", reject);
      sent.end();
    });

  it("S-17: 256 clients of one address that connect anew for each call are all answered, none is reset", async () => {
    const outcomes = new Map<string, number>();
    const client = async (): Promise<void> => {
      for (let call = 0; call < 3; call++) {
        const outcome = await ask(false).then(
          ({ status }) => String(status),
          (error: NodeJS.ErrnoException) => error.code ?? error.message,
        );
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: 256 }, client));
    expect([...outcomes]).to.deep.equal([["200", 3 * 256]]);
  });

  it("S-17: a node's key that connects and asks for nothing has 16 of them, and nobody else is kept out", async () => {
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

  it("S-17: who has as many connections as one key may have is told so, and when to ask again", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: Infinity });
    try {
      const told: Answer[] = [];
      for (let round = 1; round <= 3; round++)
        told.push(...(await Promise.all(Array.from({ length: 180 * round }, () => ask(agent)))));
      const refused = told.filter(({ status }) => status !== 200);
      expect(refused.length).to.be.within(28, 60);
      expect(new Set(refused.map(({ status, retryAfter }) => `${status} ${retryAfter}`))).to.deep.equal(
        new Set(["429 1"]),
      );
    } finally {
      agent.destroy();
    }
  });
});
