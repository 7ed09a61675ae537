import { expect } from "chai";
import fc from "#support/properties.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { commonStart, tellApart } from "#tui/ink/tell-apart.ts";
import { widthOf } from "#base/text.ts";
import { asciiTheme, linesOf, plainTheme, sceneOf } from "#support/scenes.ts";
import { wideRun } from "#support/wide-run.ts";

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
  it("have their common beginning in the rule above them if they are truncated", () => {
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
  const labelsOf = (names: readonly string[], width: number) => [...tellApart(names, width, glyphs).values()];

  it("are whole if they fit, else truncated where they do not differ", () => {
    expect(labelsOf(["k3s-worker-0001", "k3s-worker-0002"], 15)).to.deep.equal(["k3s-worker-0001", "k3s-worker-0002"]);
    expect(labelsOf(["k3s-worker-0001", "k3s-worker-0002"], 10)).to.deep.equal(["k3s-w…0001", "k3s-w…0002"]);
    expect(labelsOf(["n1.example.com", "n2.example.com", "n3"], 8)).to.deep.equal(["n3", "n1…", "n2…"]);
    expect(labelsOf(["rack1.dc1.example.com", "rack12.dc1.example.com"], 8)).to.deep.equal(["rack1…", "rack12…"]);
    expect(labelsOf(["storage1.rack1.dc1.local", "storage2.rack1.dc2.local"], 14)).to.deep.equal([
      "s…1.rack1.dc1…",
      "s…2.rack1.dc2…",
    ]);
    expect(labelsOf(["k3s-worker-fra1-1", "k3s-server-ams2-2"], 8)).to.deep.equal(["w-fra1-1", "s-ams2-2"]);
  });

  it("differ in the view on the narrowest terminal", () => {
    const names = Array.from({ length: 200 }, (_, index) => `storage${index}.rack${index % 7}.internal.example.com`);
    for (const theme of [plainTheme, asciiTheme]) {
      const lines = linesOf(sceneOf(runOn(names), { columns: 60, rows: 240, theme }), { columns: 60, theme });
      const rows = lines.filter((line) => /^[▸> ] [·.] /.test(line)).map((row) => row.slice(2));
      expect(rows.length).to.be.at.least(130);
      expect(new Set(rows).size).to.equal(rows.length);
    }
  });

  it("differ for any names", () => {
    const name = fc.stringMatching(/^[a-c]{1,3}([-.][a-c0-2]{1,9}){0,5}$/);
    fc.assert(
      fc.property(
        fc.uniqueArray(name, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 8, max: 20 }),
        (names, width) => {
          const labels = labelsOf(names, width);
          expect(new Set(labels).size).to.equal(names.length);
          for (const label of labels) expect(widthOf(label)).to.be.at.most(width);
        },
      ),
      { numRuns: 200 },
    );
  });
});
