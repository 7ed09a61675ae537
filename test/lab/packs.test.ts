import { expect } from "chai";
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

  before(async () => {
    lab = await ownLab({ packages: ["prometheus", "prometheus-node-exporter"] });
    nodes = await lab.up(["n1", "n2"].map((name) => ({ name, kind: "debian", disks: [] })));
    bastion = await openBastion({});
    addPacks(["node-exporter", "prometheus"], bastion.project);
    await bastion.write({ "roster/lab.yaml": await labRoster(lab) });
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  const apply = (...words: readonly string[]): Promise<string> =>
    bastion.does("state", "apply", ...words, "--output", "plain");

  it("make a Prometheus with every node as its target, and change nothing the second time", async () => {
    for (const words of [
      ["nodeexporter/exporter", "--on", "*"],
      ["prometheus/server", "--on", "n1"],
    ]) {
      await apply(...words, "--dry-run");
      await apply(...words);
      await apply(...words);
      expect(stepsNotInOrder(await bastion.events()), words[0]).to.deep.equal([]);
    }
    const [node] = nodes as readonly [LabNode];
    const ask = async (
      query: string,
    ): Promise<readonly { metric: Record<string, string>; value: [number, string] }[]> => {
      const text = await on(node, `curl -fsSG http://127.0.0.1:9095/api/v1/query --data-urlencode 'query=${query}'`);
      return (JSON.parse(text) as { data: { result: { metric: Record<string, string>; value: [number, string] }[] } })
        .data.result;
    };
    const up = await eventually(async () => {
      const found = await ask('up{job="kcore-nodes"} == 1');
      return found.length === 2 && found;
    });
    expect(up.map(({ metric }) => metric["node"])).to.have.members(["n1", "n2"]);
    // No agent runs here, and the timer says so.
    const silent = await eventually(async () => {
      const found = await ask('kcore_up{daemon="agent"} == 0');
      return found.length === 2 && found;
    });
    expect(silent).to.have.length(2);
  });
});
