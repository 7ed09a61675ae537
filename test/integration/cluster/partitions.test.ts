import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { expect } from "chai";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { startControllers } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { startNetwork } from "#support/net-hosts.ts";
import type { TestNetwork } from "#support/net-hosts.ts";
import { contest, faults, listedConflicts, placeOn, suffer, timeToAgree } from "#support/partitions.ts";

describe("controllers in two datacenters, on a network that fails (nft)", () => {
  let network: TestNetwork | undefined;
  let cluster: TestCluster;
  let controllers: readonly TestController[];
  let stop: () => Promise<void> = () => Promise.resolve();
  const acknowledged = new Map<string, number>();

  before(async function () {
    if (process.getuid?.() !== 0) this.skip();
    network = await startNetwork(3);
    cluster = await createTestCluster();
    const options = { processes: true, dcs: ["DC1", "DC1", "DC2"], place: placeOn(network.hosts) };
    ({ controllers, stop } = await startControllers(cluster, 3, options));
  });
  after(async () => {
    await stop();
    if (!network) return;
    await network.close();
    await cluster.remove();
    expect(existsSync(`/sys/class/net/${network.link}`)).to.equal(false);
  });

  for (const [index, fault] of faults.entries())
    it(`F-28: all take writes, lose none, and agree within 5 s of the healing when ${fault.name}`, async () => {
      // The first one lasts until the streams are given up; in the others TCP itself goes on again.
      const lastsMs = index === 0 ? 7_000 : 2_000;
      const { hosts } = network as TestNetwork;
      const episode = await suffer(fault, { controllers, hosts, lastsMs, acknowledged });
      for (const [place, count] of episode.acknowledged.entries())
        if (place !== fault.stops) expect(count).to.be.greaterThan(0);
      expect(episode.convergedMs).to.be.lessThan(5_000);
    });

  it("V2: list each key that both sides changed, once, as soon as they hold the same", async () => {
    const { due, listed } = await contest(controllers, (network as TestNetwork).hosts, { keys: 20, turns: 20 });
    expect(due.length).to.equal(20);
    expect(listed).to.deep.equal([due, due, due]);
    const [first, second] = controllers as [TestController, TestController];
    // What is changed by one who has seen both needs nobody's word; what is let go of is gone everywhere.
    await first.operator.call("putObject", { value: { side: "both" } }, { id: "Both/k0" });
    const { conflicts } = await second.operator.call("listConflicts", {});
    const closed = conflicts.filter(({ key }) => /k[12]$/.test(key));
    for (const { id } of closed) await second.operator.call("ackConflict", {}, { id });
    await timeToAgree(controllers);
    const left = due.filter((key) => !/k(0|1|2)$/.test(key));
    expect(left.length).to.equal(17);
    expect(await listedConflicts(controllers)).to.deep.equal([left, left, left]);
    const alarms = await Promise.all(controllers.map(({ operator }) => operator.call("replicationStatus", {})));
    expect(alarms.flatMap((status) => status.alarms.map(({ code }) => code))).to.deep.equal([]);
  });

  it("pass on what a third one wrote to whom it cannot reach", async () => {
    const [first, , third] = controllers as [TestController, TestController, TestController];
    const [here, , there] = (network as TestNetwork).hosts;
    await here?.filter([`ip saddr ${there?.address ?? ""} drop`]);
    await there?.filter([`ip saddr ${here?.address ?? ""} drop`]);
    try {
      await first.operator.call("putObject", { value: { from: 1 } }, { id: "Relayed/one" });
      // They ask each other every 15 s for what was missed.
      await eventually(async () => {
        const { objects } = await third.operator.call("listObjects", {});
        return objects.some(({ kind }) => kind === "Relayed");
      });
    } finally {
      await here?.filter([]);
      await there?.filter([]);
    }
  });
});

describe("hosts of a test's network", () => {
  it("are gone, with what runs on them, when the test is killed", async function () {
    if (process.getuid?.() !== 0) this.skip();
    const module = JSON.stringify(resolve(import.meta.dirname, "../../support/net-hosts.ts"));
    const program = `
      const { spawn } = await import("node:child_process");
      const { link, hosts: [{ through: [command, ...args] }] } = await (await import(${module})).startNetwork(2);
      const child = spawn("setpriv", ["--pdeathsig", "KILL", command, ...args, "sleep", "600"]);
      const { readFileSync } = await import("node:fs");
      // From then on it dies with its parent.
      while (readFileSync("/proc/" + child.pid + "/comm", "utf8") === "setpriv\\n") await new Promise(setImmediate);
      console.log(link + " " + child.pid);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [told] = (await once(child.stdout, "data")) as [Buffer];
    const [link = "", pid = ""] = told.toString().trim().split(" ");
    const paths = [`/sys/class/net/${link}`, `/proc/${pid}`];
    expect(paths.map((path) => existsSync(path))).to.deep.equal([true, true]);
    child.kill("SIGKILL");
    await eventually(() => !paths.some((path) => existsSync(path)));
  });
});
