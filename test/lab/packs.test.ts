import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { hashFile } from "#base/file.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { eventually } from "#support/cluster.ts";
import { labRoster, on, openBastion, type Bastion } from "#support/deploy.ts";
import { stepsNotInOrder } from "#support/examples.ts";
import { ownLab } from "#support/own-lab.ts";
import { addPacks } from "#support/packs.ts";

describe("packs/node-exporter and packs/prometheus", function () {
  this.timeout(300_000);
  let lab: Lab;
  let bastion: Bastion;
  let nodes: readonly LabNode[];
  let server: Server;
  let url: string;

  before(async () => {
    lab = await ownLab({ packages: ["prometheus", "prometheus-node-exporter"] });
    nodes = await lab.up(["n1", "n2"].map((name) => ({ name, kind: "debian", disks: [] })));
    bastion = await openBastion({});
    addPacks(["node-exporter", "prometheus"], bastion.project);
    await bastion.write({ "roster/lab.yaml": await labRoster(lab) });
    server = createServer(({ url: path = "" }, response) => {
      createReadStream(join(bastion.project, path)).pipe(response);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server?.close();
    await bastion?.remove();
    await lab?.down();
  });

  const apply = (...words: readonly string[]): Promise<string> =>
    bastion.does("state", "apply", ...words, "--output", "plain");

  it("make a Prometheus of Debian's packages and of tarballs, with every node as its target, and change nothing the second time", async () => {
    const tarballs = { "node-exporter": ["prometheus-node-exporter"], prometheus: ["prometheus", "promtool"] };
    const fromTarball = async (name: keyof typeof tarballs): Promise<readonly string[]> => {
      const file = join(bastion.project, `${name}.tar.gz`);
      const names = ["--transform", "s,^prometheus-node-exporter,node_exporter,;s,^,release/,"];
      execFileSync("tar", ["-C", "/usr/bin", "-I", "gzip -1", "-cf", file, ...names, ...tarballs[name]]);
      const given = { source: "tarball", url: `${url}/${name}.tar.gz`, sha256: await hashFile(file) };
      return Object.entries(given).flatMap(([key, value]) => ["--set", `${key}=${value}`]);
    };
    for (const words of [
      ["nodeexporter/exporter", "--on", "n1"],
      ["nodeexporter/exporter", "--on", "n2", ...(await fromTarball("node-exporter"))],
      ["prometheus/server", "--on", "n1"],
      ["prometheus/server", "--on", "n2", ...(await fromTarball("prometheus"))],
    ]) {
      await apply(...words, "--dry-run");
      await apply(...words);
      await apply(...words);
      expect(stepsNotInOrder(await bastion.events()), words.join(" ")).to.deep.equal([]);
    }
    for (const node of nodes) await expectTargets(node);
  });

  it("takes an operator's certificate to scrape controllers and agents directly", async () => {
    const [node] = nodes as readonly [LabNode];
    await on(node, "cd /etc/prometheus && touch operator.crt operator.key ca.crt");
    const set = ["--set", "certificate=/etc/prometheus/operator", "--set", "cluster_ca=/etc/prometheus/ca.crt"];
    await apply("prometheus/server", "--on", "n1", ...set);
    expect(await on(node, "promtool check config /etc/prometheus/prometheus.yml 2>&1")).to.contain("SUCCESS");
    expect(await on(node, "grep -c ':9091' /etc/prometheus/prometheus.yml")).to.equal("2");
  });

  /** Expects that the node's Prometheus has both nodes as targets, and their metrics of kcore's daemons. */
  async function expectTargets(node: LabNode): Promise<void> {
    interface Sample {
      readonly metric: Readonly<Record<string, string>>;
    }
    const nodesOf = async (query: string): Promise<readonly (string | undefined)[] | undefined> => {
      const text = await on(node, `curl -fsSG http://127.0.0.1:9095/api/v1/query --data-urlencode 'query=${query}'`);
      const { data } = JSON.parse(text) as { data: { result: readonly Sample[] } };
      return data.result.length === 2 ? data.result.map(({ metric }) => metric["node"]) : undefined;
    };
    const up = await eventually(() => nodesOf('up{job="kcore-nodes"} == 1').catch(() => undefined));
    expect(up).to.have.members(["n1", "n2"]);
    // No agent runs here, and the timer says so.
    expect(await eventually(() => nodesOf('kcore_up{daemon="agent"} == 0'))).to.have.members(["n1", "n2"]);
  }
});
