import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { startControllers } from "#support/controllers.ts";
import type { ControllerPlace, TestController } from "#support/controllers.ts";
import { findLost, putNumber, timeToAgree } from "#support/agreement.ts";
import { freePort } from "#support/ports.ts";

describe("a controller whose file system fails", () => {
  let cluster: TestCluster;
  let controllers: readonly [TestController, TestController];
  let stop: () => Promise<void> = () => Promise.resolve();
  /** The state's folder: mounted in a namespace of the controller's own, and gone with its process. */
  let dir: string;
  const acknowledged = new Map<string, number>();

  beforeEach(async function () {
    if (process.getuid?.() !== 0) this.skip();
    acknowledged.clear();
    cluster = await createTestCluster();
    dir = join(cluster.dir, "disk");
    await mkdir(dir);
  });
  afterEach(async () => {
    await stop();
    stop = () => Promise.resolve();
    await cluster.remove();
  });

  /** Two controllers; this command mounts the second's state on "$0". */
  const start = async (mount: string): Promise<void> => {
    const through = ["unshare", "-m", "--propagation", "private"];
    const shell = ["sh", "-c", `${mount} && exec "$@"`, dir];
    const hosts = ["127.0.0.41", "127.0.0.42"];
    const ports = await Promise.all(hosts.map((host) => freePort(host)));
    const places = hosts.map((host, index): ControllerPlace => {
      const endpoint = `${host}:${ports[index] ?? 0}`;
      return index === 0 ? { endpoint } : { endpoint, through: [...through, ...shell] };
    });
    const started = await startControllers(cluster, 2, {
      processes: true,
      place: (index) => places[index] as ControllerPlace,
      config: (index) => (index === 0 ? {} : { dbPath: join(dir, "db") }),
    });
    controllers = started.controllers as typeof controllers;
    ({ stop } = started);
  };
  const inside = (command: string): string =>
    execFileSync("nsenter", ["-t", String(controllers[1].pid()), "-m", "sh", "-c", command], { encoding: "utf8" });
  const put = (controller: TestController, id: string, number: number): Promise<string> =>
    putNumber(controller, { id, number, acknowledged });
  const numberAt = async ({ operator }: TestController, id: string): Promise<unknown> =>
    (await operator.call("getObject", {}, { id })).value;

  it("F-6: goes read-only with a file system that failed, says so at a start, and has lost nothing when it is mended", async () => {
    const image = join(cluster.dir, "image");
    const options = join(cluster.dir, "options");
    execFileSync("sh", ["-c", `truncate -s 24M ${image} && mkfs.ext4 -q ${image}`]);
    await writeFile(options, "rw");
    // Checked first, as at boot; exit code 1 means that errors were mended.
    const check = `{ e2fsck -p ${image} >/dev/null || [ $? = 1 ]; }`;
    await start(`${check} && mount -o "loop,$(cat ${options})" ${image} "$0"`);
    const [other, failed] = controllers;
    for (let number = 1; number <= 20; number++)
      expect(await put(failed, `Failed/${number % 5}`, number)).to.equal("ok");
    // The kernel refuses an orderly remount while the journal is open. ext4 itself remounts after an error, which the test causes.
    expect(() => inside(`mount -o remount,ro ${dir} 2>/dev/null`)).to.throw();
    inside(`mount -o remount,abort ${dir}`);
    expect(await put(failed, "Failed/0", 21)).to.equal("507 STORE_UNWRITABLE");
    expect(await numberAt(failed, "Failed/0")).to.deep.equal({ number: 20 });
    expect(await put(other, "Failed/0", 22)).to.equal("ok");
    const { problems } = await failed.operator.call("replicationStatus", {});
    expect(problems.join("\n")).to.match(/read-only file system/);

    await failed.stop();
    await writeFile(options, "ro");
    const refusal = await failed.start().then(
      () => "it started",
      (error: unknown) => String(error),
    );
    expect(refusal).to.match(/read-only file system.*"code":"STORE_UNWRITABLE","hint":"[^"]*mount/s);
    await writeFile(options, "rw");
    await failed.start();
    await eventually(async () => (await failed.operator.call("ready", {}).catch(() => undefined))?.ready);
    await timeToAgree(controllers);
    expect(await findLost(controllers, acknowledged)).to.deep.equal([]);
    expect(await put(failed, "Failed/0", 23)).to.equal("ok");
  });
});
