import { randomUUID } from "node:crypto";
import { request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { parseEndpoint } from "#api/endpoint.ts";
import { createTestCluster } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { startController } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { useOf } from "#support/process-use.ts";

/** Milliseconds of CPU, far above one turn of the event loop. A list sent in one piece takes 1,600. */
const longest = 600;

describe("a controller that is asked for long lists", () => {
  let cluster: TestCluster;
  let controller: TestController;
  const objects = 5_000;

  before(async () => {
    cluster = await createTestCluster();
    controller = await startController(cluster, { process: true });
    let next = 0;
    const value = { list: Array.from({ length: 400 }, (_, index) => ({ index })) };
    const write = async (): Promise<void> => {
      while (next < objects) await controller.operator.call("putObject", { value }, { id: `Long/${next++}` });
    };
    await Promise.all(Array.from({ length: 16 }, write));
  });
  after(async () => {
    await controller?.end();
    await cluster?.remove();
  });

  /** Makes a request and discards the answer; gives its size in bytes. */
  const fetch = (path: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const { host, port } = parseEndpoint(controller.endpoint);
      const sent = request({ ...cluster.operator, host, port, path, agent: false }, (response) => {
        let bytes = 0;
        response.on("data", (chunk: Buffer) => (bytes += chunk.length));
        response.once("close", () => resolve(bytes));
      });
      sent.once("error", reject);
      sent.end();
    });

  for (const [what, path] of [
    ["listObjects", "/v1/objects"],
    ["backup", "/v1/backup"],
  ] as const)
    it(`S-17: stores writes of others while it answers ${what} with some 30 MB`, async () => {
      const id = `Write/${randomUUID()}`;
      const slow: number[] = [];
      let isDone = false;
      const fetched = fetch(path).finally(() => (isDone = true));
      for (let count = 0; !isDone; count++) {
        const { cpuMs } = useOf(controller.pid());
        await controller.operator.call("putObject", { value: { count } }, { id });
        slow.push(useOf(controller.pid()).cpuMs - cpuMs);
        await sleep(5);
      }
      expect(await fetched).to.be.greaterThan(25e6);
      expect(Math.max(...slow)).to.be.lessThan(longest);
    });

  it("sends the whole list to a client", async () => {
    const { objects: listed } = await controller.operator.call("listObjects", {});
    expect(listed.filter(({ kind }) => kind === "Long")).to.have.length(objects);
  });
});
