import { globSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { startControllers } from "#support/controllers.ts";
import type { ControllerPlace, TestController } from "#support/controllers.ts";
import { findLost, putNumber, timeToAgree } from "#support/partitions.ts";
import { freePort } from "#support/ports.ts";

const preload = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1")[0] ?? "libfaketime is missing: apt install faketime";

describe("a controller whose clock jumps (libfaketime)", () => {
  let cluster: TestCluster;
  let controllers: readonly [TestController, TestController, TestController];
  let stop: () => Promise<void>;
  let clockFile: string;
  const acknowledged = new Map<string, number>();

  before(async () => {
    cluster = await createTestCluster();
    clockFile = join(cluster.dir, "clock");
    await writeFile(clockFile, "+0s\n");
    const hosts = ["127.0.0.51", "127.0.0.52", "127.0.0.53"];
    const ports = await Promise.all(hosts.map((host) => freePort(host)));
    const fake = ["FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", `FAKETIME_TIMESTAMP_FILE=${clockFile}`];
    const place = (index: number): ControllerPlace => {
      const endpoint = `${hosts[index] ?? ""}:${ports[index] ?? 0}`;
      return index === 2 ? { endpoint, through: ["env", `LD_PRELOAD=${preload}`, ...fake] } : { endpoint };
    };
    const started = await startControllers(cluster, 3, { processes: true, dcs: ["DC1", "DC1", "DC2"], place });
    controllers = started.controllers as typeof controllers;
    ({ stop } = started);
  });
  after(async () => {
    await stop();
    await cluster.remove();
  });

  const put = (controller: TestController, id: string): Promise<string> =>
    putNumber(controller, { id, number: (acknowledged.get(id) ?? 0) + 1, acknowledged });
  const putAll = async (): Promise<readonly string[]> =>
    Promise.all(controllers.map((controller, place) => put(controller, `Clock/by-${place}`)));
  const alarmsAt = async ({ operator }: TestController): Promise<readonly string[]> =>
    (await operator.call("replicationStatus", {})).alarms.map(({ code }) => code);

  for (const jump of ["+1h", "-1h"])
    it(`F-8: writes nothing from the moment it jumps by ${jump}, alone, and goes on when it is right again`, async () => {
      const [first, , third] = controllers;
      for (let round = 0; round < 2; round++) {
        expect(await putAll()).to.deep.equal(["ok", "ok", "ok"]);
        await timeToAgree(controllers);
        await writeFile(clockFile, `${jump}\n`);
        for (let turn = 0; turn < 20; turn++)
          expect(await putAll()).to.deep.equal(["ok", "ok", "503 CONTROLLER_READ_ONLY"]);
        expect(await alarmsAt(third)).to.include("FENCED");
        expect(await alarmsAt(first)).not.to.include("FENCED");
        expect((await third.operator.call("listObjects", {})).objects).to.have.length.greaterThan(2);
        await writeFile(clockFile, "+0s\n");
        await eventually(async () => (await put(third, "Clock/after")) === "ok");
        await timeToAgree(controllers);
        expect(await findLost(controllers, acknowledged)).to.deep.equal([]);
      }
      for (const { operator } of controllers) {
        const { objects } = await operator.call("listObjects", {});
        // Nothing was stamped by the wrong clock.
        for (const { at } of objects) expect(Math.abs(Date.parse(at) - Date.now())).to.be.lessThan(1_800_000);
      }
    });
});
