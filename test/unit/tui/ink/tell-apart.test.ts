import { expect } from "chai";
import fc from "#support/properties.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { commonStart, tellApart } from "#tui/ink/tell-apart.ts";
import { widthOf } from "#base/text.ts";
import { asciiTheme, linesOf, plainTheme, sceneOf } from "#support/scenes.ts";
import { wideRun } from "#support/wide-run.ts";

const numbered = (count: number, name: (number: string, index: number) => string) =>
  Array.from({ length: count }, (_, index) => name(String(index + 1).padStart(4, "0"), index));

/** Typical names of machines. */
const kinds: Readonly<Record<string, (count: number) => readonly string[]>> = {
  "one role": (count) => numbered(count, (number) => `k3s-worker-fra1-${number}`),
  "roles and places": (count) =>
    numbered(
      count,
      (number, index) => `k3s-${["worker", "server"][index % 2]}-${["fra1", "ams2", "fra3"][index % 3]}-${number}`,
    ),
  "the same numbers in two places": (count) =>
    Array.from({ length: count }, (_, index) => `k3s-worker-${["fra1", "ams1"][index % 2]}-${1000 + (index >> 1)}`),
  "domain names": (count) => numbered(count, (number) => `node-${Number(number)}.prod.dc1.example.com`),
  "domain names of several places": (count) =>
    numbered(count, (number, index) => `storage${Number(number)}.rack${index % 7}.dc${index % 3}.internal.example.com`),
  "only digits differ": (count) =>
    numbered(count, (number) => `ip-10-0-12-${Number(number)}.eu-central-1.compute.internal`),
  "no word in them": (count) => numbered(count, (number) => `averylonghostnamewithoutanydivision${number}`),
};

function runOn(names: readonly string[]): readonly RunEvent[] {
  return [
    {
      seq: 1,
      at: 1000,
      type: "run.started",
      runId: "r1",
      title: "deploy_node",
      command: "kcore orchestrate deploy_node",
      nodes: names,
      stages: [{ id: "a", title: "a", nodes: names }],
      dryRun: false,
      who: "ops@bastion",
    },
  ];
}

describe("names in a narrow column", () => {
  it("have what all begin with told once, in the rule above them, where they are cut", () => {
    expect(commonStart(["k3s-worker-fra1-0001", "k3s-worker-fra1-0002"])).to.equal("k3s-worker-fra1-");
    expect(commonStart(["k3s-worker-fra1-0001", "k3s-worker-ams2-0002"])).to.equal("k3s-worker-");
    expect(commonStart(["web10.example.org", "web11.example.org"])).to.equal("");
    for (const names of [[], ["alone-1"], ["a-1", "a-2"], ["a", "b"]]) expect(commonStart(names)).to.equal("");
    const events = wideRun({ nodes: 12, steps: 6 }).map(
      (event) => JSON.parse(JSON.stringify(event).replaceAll(/"n(\d\d)"/g, '"k3s-worker-fra1-00$1"')) as RunEvent,
    );
    const rule = (columns: number) =>
      linesOf(sceneOf(events, { columns }), { columns }).find((line) => line.startsWith("── 12 nodes")) ?? "";
    expect(rule(80)).to.contain("12 nodes k3s-worker-fra1-…");
    expect(rule(160)).to.not.contain("k3s");
  });

  const { glyphs } = plainTheme;
  const told = (names: readonly string[], width: number) => [...tellApart(names, width, glyphs).values()];

  it("stay whole where they fit, and keep what differs where they do not", () => {
    expect(told(["k3s-worker-0001", "k3s-worker-0002"], 15)).to.deep.equal(["k3s-worker-0001", "k3s-worker-0002"]);
    expect(told(["k3s-worker-0001", "k3s-worker-0002"], 10)).to.deep.equal(["k3s-w…0001", "k3s-w…0002"]);
    expect(told(["n1.example.com", "n2.example.com", "n3"], 8)).to.deep.equal(["n3", "n1…", "n2…"]);
    expect(told(["rack1.dc1.example.com", "rack12.dc1.example.com"], 8)).to.deep.equal(["rack1…", "rack12…"]);
    expect(told(["storage1.rack1.dc1.local", "storage2.rack1.dc2.local"], 14)).to.deep.equal([
      "s…1.rack1.dc1…",
      "s…2.rack1.dc2…",
    ]);
    expect(told(["k3s-worker-fra1-1", "k3s-server-ams2-2"], 8)).to.deep.equal(["w-fra1-1", "s-ams2-2"]);
  });

  for (const [kind, make] of Object.entries(kinds))
    for (const count of [3, 24, 200])
      it(`are never alike: ${count} nodes, ${kind}`, () => {
        const names = make(count);
        for (const width of [10, 12, 15, 20]) {
          const labels = told(names, width);
          expect(new Set(labels).size, `at ${width}`).to.equal(count);
          for (const label of labels) expect(widthOf(label)).to.be.at.most(width);
        }
        // The same in the view itself, on the narrowest supported terminal.
        for (const theme of [plainTheme, asciiTheme]) {
          const scene = sceneOf(runOn(names), { columns: 60, rows: 240, theme });
          const rows = linesOf(scene, { columns: 60, theme }).filter((line) => /^[▸> ] [·.] /.test(line));
          expect(rows.length).to.be.at.least(Math.min(count, 130));
          expect(new Set(rows.map((row) => row.slice(2))).size).to.equal(rows.length);
        }
      });

  it("are never alike, whatever they are", () => {
    const name = fc.stringMatching(/^[a-c]{1,3}([-.][a-c0-2]{1,9}){0,5}$/);
    fc.assert(
      fc.property(
        fc.uniqueArray(name, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 8, max: 20 }),
        (names, width) => {
          const labels = told(names, width);
          expect(new Set(labels).size).to.equal(names.length);
          for (const label of labels) expect(widthOf(label)).to.be.at.most(width);
        },
      ),
      { numRuns: 200 },
    );
  });
});
