import { expect } from "chai";
import { openApi } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { createTestCluster, eventually } from "#support/cluster.ts";
import { refusalCodeOf, startController } from "#support/controllers.ts";

/** The longest time limit of clients; after a shorter pause, a controller answers the requests that it finds. */
const patienceMs = 5_000;

describe("a controller that is paused (SIGSTOP)", () => {
  it("F-31: does not carry out requests from the pause, whose clients have given up", async () => {
    const cluster = await createTestCluster();
    const controller = await startController(cluster, { process: true });
    const put = (number: number, client = controller.operator): Promise<unknown> =>
      client.call("putObject", { value: { number } }, { id: "Pause/one" });
    const endpoint = parseEndpoint(controller.endpoint);
    const client = openApi({ endpoint, credentials: cluster.operator, clock: Date.now, timeoutMs: patienceMs });
    try {
      // On an open connection.
      await put(1, client);
      process.kill(controller.pid(), "SIGSTOP");
      const asked = await put(2, client).then(
        () => "told",
        () => "given up",
      );
      expect(asked).to.equal("given up");
      process.kill(controller.pid(), "SIGCONT");
      // New requests are served after the unread ones.
      await eventually(async () => (await refusalCodeOf(put(3))) === "allowed");
      const puts = controller.log().match(/"method":"putObject".*"status":\d+/g) ?? [];
      expect(puts.map((line) => /"status":(\d+)/.exec(line)?.[1]).slice(0, 2)).to.deep.equal(["200", "503"]);
    } finally {
      client.close();
      await controller.end();
      await cluster.remove();
    }
  });
});
