import { randomUUID } from "node:crypto";
import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect } from "chai";
import { parseEndpoint } from "#api/endpoint.ts";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { nodeCredentials, recordAt, registrationOf, startController } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { freePort } from "#support/ports.ts";

const openFiles = 200;

describe("a controller with few file descriptors", () => {
  let cluster: TestCluster;
  let controller: TestController;
  const sockets: Socket[] = [];

  beforeEach(async () => {
    cluster = await createTestCluster();
    const endpoint = `127.0.0.1:${await freePort()}`;
    const through = ["sh", "-c", `ulimit -n ${openFiles} && exec "$@"`, "sh"];
    controller = await startController(cluster, { process: true, place: { endpoint, through } });
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await controller.end();
    await cluster.remove();
  });

  const track = (socket: Socket): Socket => {
    socket.on("error", () => undefined);
    sockets.push(socket);
    return socket;
  };
  const descriptors = async (): Promise<number> => (await readdir(`/proc/${controller.pid()}/fd`)).length;

  it("F-30: serves existing connections and its store during a flood, and new connections afterwards", async () => {
    const endpoint = parseEndpoint(controller.endpoint);
    const id = randomUUID();
    const credentials = nodeCredentials(cluster, id);
    const node = controller.clientOf(credentials);
    await node.call("registerNode", registrationOf(id));
    // Silent strangers, and nodes that stay connected: each of the two groups would take all descriptors.
    const others = Array.from({ length: 20 }, () => nodeCredentials(cluster, randomUUID()));
    await recordAt(controller, ...others);
    let most = 0;
    for (let index = 0; index < 400; index++) {
      track(connect({ ...endpoint, localAddress: `127.0.1.${1 + (index % 8)}` }));
      const other = others[index % others.length];
      if (other) track(connectTls({ ...endpoint, ...other, rejectUnauthorized: false })).write("GET / HTTP/1.1\r\n");
      if (index % 20 !== 0) continue;
      await new Promise((resolve) => setTimeout(resolve, 50));
      most = Math.max(most, await descriptors());
      // The controller serves existing connections, and stores their writes.
      await node.call("heartbeat", { nodeId: id });
      await controller.operator.call("putObject", { value: { index } }, { id: "Cluster/x" });
    }
    expect(most).to.be.lessThan(openFiles - 40);
    for (const socket of sockets.splice(0)) socket.destroy();
    const fresh = controller.clientOf(credentials);
    await eventually(() =>
      fresh.call("heartbeat", { nodeId: id }).then(
        ({ status }) => status === "ready",
        () => false,
      ),
    );
    expect((await controller.operator.call("ready", {})).ready).to.equal(true);
    expect(controller.log()).not.to.contain("a bug ended");
  });
});
