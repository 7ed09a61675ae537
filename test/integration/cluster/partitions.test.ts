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
import { faults, placeOn, suffer } from "#support/partitions.ts";

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
