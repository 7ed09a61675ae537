import { randomUUID } from "node:crypto";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { expect } from "chai";
import { runTasks } from "#base/tasks.ts";
import { foundHere, joinHere } from "#controller/found-or-join.ts";
import { repairHere, restoreHere } from "#controller/restore-state.ts";
import { codec, createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { areAllInStep, nodeCredentials, refusalCodeOf, startControllers } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { codeOf, rejectionOf } from "#support/rejection.ts";

describe("a controller that lost its state or its membership", () => {
  let cluster: TestCluster;
  let controllers: readonly [TestController, TestController, TestController];
  let stop: () => Promise<void>;

  beforeEach(async () => {
    cluster = await createTestCluster();
    const started = await startControllers(cluster, 3);
    controllers = started.controllers as typeof controllers;
    ({ stop } = started);
    await controllers[0].operator.call("putObject", { value: { n: 1 } }, { id: "Lost/kept" });
    await eventually(() => areAllInStep(controllers));
  });
  afterEach(async () => {
    await stop();
    await cluster.remove();
  });

  const loseState = async ({ stop: end, dbPath }: TestController): Promise<void> => {
    await end();
    await rm(dbPath, { recursive: true });
  };
  const alarmsAt = async ({ operator }: TestController): Promise<readonly string[]> =>
    (await operator.call("replicationStatus", {})).alarms.map(({ code, message }) => `${code} ${message}`);

  it("is neither founded nor joined over an existing state, also not over an interrupted restore", async () => {
    const [founder] = controllers;
    await founder.stop();
    const options = { configFile: join(founder.folder, "controller.yaml"), now: Date.now(), yaml: codec };
    const before = await readdir(founder.dbPath);
    expect(await codeOf(foundHere(options))).to.equal("CONTROLLER_HAS_STATE");
    expect(await codeOf(joinHere([], { ...options, fresh: false }))).to.equal("CONTROLLER_HAS_STATE");
    expect(await readdir(founder.dbPath)).to.deep.equal(before);
    await rm(founder.dbPath, { recursive: true });
    await mkdir(join(founder.dbPath, "restoring-00000000"), { recursive: true, mode: 0o700 });
    expect(await codeOf(foundHere(options))).to.equal("CONTROLLER_HAS_STATE");
  });

  it("does not found a second cluster, and raises an alarm on every controller", async () => {
    const [founder, ...others] = controllers;
    await loseState(founder);
    await founder.start();
    const { ready, reason } = await founder.operator.call("ready", {});
    expect(ready).to.equal(false);
    expect(reason).to.contain("founds no second cluster").and.to.contain("kcore controller found");
    expect((await alarmsAt(founder)).join("\n")).to.match(/^EMPTY_STATE .*kcore orchestrate deploy_node/);
    const other = { spki: "0".repeat(64), address: "192.0.2.5:9090", dc: "DC1" };
    expect(await refusalCodeOf(founder.operator.call("registerController", other, { id: randomUUID() }))).to.equal(
      "CONTROLLER_JOINING",
    );
    for (const each of others)
      await eventually(async () =>
        (await alarmsAt(each)).some((text) => text.includes(founder.id) && text.includes("CONTROLLER_EMPTY")),
      );
    for (const { operator } of others)
      expect((await operator.call("listControllers", {})).controllers).to.have.length(3);
  });

  it("is not restored from a state without controllers; --alone shows what the state holds and needs the cluster's name", async () => {
    const [founder] = controllers;
    const configFile = join(founder.folder, "controller.yaml");
    const options = { configFile, now: Date.now(), yaml: codec, output: "table" as const, tasks: runTasks };
    const backup = join(founder.folder, "backup");
    await writeFile(backup, await buffer(await founder.operator.open("backup", {})));
    await founder.stop();
    const before = await readdir(founder.dbPath);
    const [unnamed] = (await rejectionOf(repairHere({ ...options, alone: true }))).problems;
    expect(unnamed?.code).to.equal("CONFIRM_DENIED");
    expect(unnamed?.message).to.match(/cluster “lab”.* 3 controllers \(127\.0\.0\.1.* 0 nodes, last changed at 20/);
    expect(unnamed?.hint).to.contain("--alone --cluster lab");
    expect(await codeOf(repairHere({ ...options, alone: true, cluster: "prod" }))).to.equal("CONFIRM_DENIED");
    expect(await codeOf(restoreHere(backup, { ...options, alone: true }))).to.equal("CONFIRM_DENIED");
    expect(await readdir(founder.dbPath)).to.deep.equal(before);
    await rm(founder.dbPath, { recursive: true });
    await mkdir(founder.dbPath);
    for (const alone of [false, true])
      expect(await codeOf(repairHere({ ...options, alone, cluster: "lab" }))).to.equal("STORE_EMPTY");
    // A state that was founded but never started is empty too: only a start of the controller founds the cluster.
    await foundHere(options);
    for (const alone of [false, true])
      expect(await codeOf(repairHere({ ...options, alone, cluster: "lab" }))).to.equal("STORE_EMPTY");
    await rm(founder.dbPath, { recursive: true });
    await mkdir(founder.dbPath);
    await restoreHere(backup, { ...options, alone: true, cluster: "lab" });
    await founder.start();
    await eventually(async () => (await founder.operator.call("ready", {})).ready);
    expect((await founder.operator.call("getObject", {}, { id: "Lost/kept" })).value).to.deep.equal({ n: 1 });
  });

  it("that was removed while it was off is not ready and takes no writes; all controllers show the refusal", async () => {
    const [first, second, third] = controllers;
    await third.stop();
    await first.operator.call("removeController", { reason: "burnt" }, { id: third.id });
    await eventually(async () => (await second.operator.call("listControllers", {})).controllers.length === 2);
    const node = third.clientOf(nodeCredentials(cluster, randomUUID()));
    await third.start();
    for (const each of [first, second])
      await eventually(async () =>
        (await alarmsAt(each)).some((text) => text.startsWith("REFUSING") && text.includes(third.id)),
      );
    await eventually(async () => (await alarmsAt(third)).filter((text) => text.startsWith("REFUSED")).length === 2);
    await eventually(async () => (await alarmsAt(third)).some((text) => text.startsWith("TURNED_OUT")));
    expect(await third.operator.call("ready", {})).to.deep.include({ ready: false });
    const { reason } = await third.operator.call("ready", {});
    expect(reason).to.contain("is no member of its cluster").and.to.contain("KEY_REVOKED");
    const put = third.operator.call("putObject", { value: { n: 2 } }, { id: "Lost/kept" });
    expect(await refusalCodeOf(put)).to.equal("CONTROLLER_JOINING");
    expect(await refusalCodeOf(node.call("renewChallenge", { nodeId: randomUUID() }))).to.equal("CONTROLLER_JOINING");
    expect((await alarmsAt(third)).join("\n")).to.contain("kcore controller join --fresh");
  });

  it("serves reads only until it hears from a member", async () => {
    const [first, second, third] = controllers;
    for (const each of controllers) await each.stop();
    await third.start();
    const put = (): Promise<string> =>
      refusalCodeOf(third.operator.call("putObject", { value: { n: 2 } }, { id: "Lost/kept" }));
    expect(await put()).to.equal("CONTROLLER_READ_ONLY");
    expect((await third.operator.call("getObject", {}, { id: "Lost/kept" })).value).to.deep.equal({ n: 1 });
    const { ready, reason } = await third.operator.call("ready", {});
    expect(ready).to.equal(false);
    expect(reason).to.contain("it takes no writes").and.to.contain("repair --alone");
    await first.start();
    await eventually(async () => (await put()) === "allowed");
    await second.start();
  });
});
