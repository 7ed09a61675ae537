import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { openApi } from "#api/client.ts";
import type { ApiClient } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { codec, createTestCluster, eventually, startDaemon } from "#support/cluster.ts";
import type { Daemon, TestCluster } from "#support/cluster.ts";
import { areAllInStep, refusalCodeOf, startControllers } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { freePort } from "#support/ports.ts";

/** A process with the identity of another controller, on another port, with an old copy of its state. */
interface Duplicate {
  readonly endpoint: string;
  readonly operator: ApiClient;
  readonly end: () => Promise<void>;
}

describe("two processes that run as one controller", () => {
  let cluster: TestCluster;
  let stops: (() => Promise<void>)[];

  beforeEach(async () => {
    cluster = await createTestCluster();
    stops = [];
  });
  afterEach(async () => {
    for (const stop of stops) await stop();
    await cluster.remove();
  });

  const startMany = async (count: number): Promise<readonly TestController[]> => {
    const { controllers, stop } = await startControllers(cluster, count, { processes: true });
    stops.push(stop);
    return controllers;
  };
  /** Copies the state of the last controller while it is stopped, and starts the copy after the original is known again. */
  const startCopy = async (controllers: readonly TestController[]): Promise<Duplicate> => {
    const original = controllers.at(-1) as TestController;
    await original.stop();
    const dbPath = `${original.dbPath}-copy`;
    await cp(original.dbPath, dbPath, { recursive: true });
    await original.start();
    await eventually(() => areAllInStep(controllers));
    const { host } = parseEndpoint(original.endpoint);
    const endpoint = `${host}:${await freePort(host)}`;
    const config = codec.parse(await readFile(join(original.folder, "controller.yaml"), "utf8")) as object;
    const daemon: Daemon = await startDaemon(["controller", "serve"], join(original.folder, "copy.yaml"), {
      ...config,
      listenAddr: endpoint,
      dbPath,
    });
    const client = openApi({ endpoint: parseEndpoint(endpoint), credentials: cluster.operator, clock: Date.now });
    stops.unshift(async () => {
      client.close();
      await daemon.end("SIGKILL");
    });
    await daemon.logged("the controller listens");
    return { endpoint, operator: client, end: async () => void (await daemon.end("SIGKILL")) };
  };
  const duplicateAlarmsAt = async ({ operator }: Pick<TestController, "operator">): Promise<string> =>
    (await operator.call("replicationStatus", {})).alarms
      .filter(({ code }) => code === "TWO_COPIES")
      .map(({ message }) => message)
      .join("\n");

  it("raise an alarm on every controller; the later one becomes read-only, and no acknowledged write is lost", async () => {
    const controllers = await startMany(3);
    const [first, second, third] = controllers as [TestController, TestController, TestController];
    await eventually(() => areAllInStep(controllers));
    const copy = await startCopy(controllers);
    const acknowledged: string[] = [];
    const put = async ({ operator }: Pick<TestController, "operator">, id: string): Promise<void> => {
      if ((await refusalCodeOf(operator.call("putObject", { value: { by: id } }, { id }))) === "allowed")
        acknowledged.push(id);
    };
    for (let turn = 0; turn < 20; turn++)
      await Promise.all([put(third, `Twin/original-${turn}`), put(copy, `Twin/copy-${turn}`)]);
    for (const each of [first, second, third, copy])
      await eventually(async () => {
        const alarm = await duplicateAlarmsAt(each);
        return alarm.includes(third.id) && alarm.includes(third.endpoint) && alarm.includes(copy.endpoint);
      });
    const isReadOnly = await eventually(async () => {
      const { readOnly } = await copy.operator.call("replicationStatus", {});
      return readOnly === "TWO_COPIES";
    });
    expect(isReadOnly).to.equal(true);
    expect((await copy.operator.call("ready", {})).ready).to.equal(false);
    // The copy may still ask its peers for missed transactions (503 CONTROLLER_JOINING).
    await eventually(
      async () =>
        (await refusalCodeOf(copy.operator.call("putObject", { value: { n: 1 } }, { id: "Twin/late" }))) ===
        "CONTROLLER_READ_ONLY",
    );
    await put(third, "Twin/goes-on");
    expect(acknowledged).to.include("Twin/goes-on");
    // Transactions that no peer has when a controller is lost are on its disk alone.
    await eventually(
      async () => (await refusalCodeOf(first.operator.call("getObject", {}, { id: "Twin/goes-on" }))) === "allowed",
    );

    // The operator keeps the copy: the cluster admits it with all its acknowledged writes.
    await third.stop("SIGKILL");
    await eventually(async () => (await copy.operator.call("ready", {})).ready);
    await put(copy, "Twin/kept-copy");
    expect(acknowledged).to.include("Twin/kept-copy");
    for (const each of [first, second, copy])
      await eventually(async () => {
        const { objects } = await each.operator.call("listObjects", {});
        const there = new Set(objects.map(({ value }) => (value as { by?: string }).by));
        return acknowledged.every((id) => there.has(id)) && (await duplicateAlarmsAt(each)) === "";
      });
  });
});
