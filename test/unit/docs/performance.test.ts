import { readFileSync } from "node:fs";
import { expect } from "chai";
import { files, readResults, renewPage } from "../../../bench/push/page.ts";
import { growthPlot } from "../../../bench/push/plot.ts";
import type { Results } from "../../../bench/push/results.ts";
import { rowsOf } from "../../../bench/push/rows.ts";

describe("docs/performance.md", () => {
  it("shows the results that are kept, and nothing else", () => {
    const page = readFileSync(files.page, "utf8");
    // The failure shows the command that mends the page, not a diff of all tables.
    expect(renewPage(page, readResults()) === page, "node bench/push/page.ts").to.equal(true);
    expect(readFileSync(files.plot, "utf8") === growthPlot(readResults()), "node bench/push/page.ts").to.equal(true);
  });

  const cell = { work: "W", phase: "B", nodes: 50, rtt: 0, rounds: 1, bastion: 1, targets: 1 } as const;
  const rows = (...cells: Results["cells"]) =>
    rowsOf({ date: "", machine: "", rounds: 1, cells, exact: [], memory: [] });
  const script = { ...cell, contender: "script", seconds: 2 } as const;
  const kcore = (seconds: number) => ({ ...cell, contender: "kcore", seconds }) as const;

  it("calls a goal missed when the figure is beyond it, and not run when there is none", () => {
    const verdict = (seconds: number) => rows(script, kcore(seconds)).map((row) => row.verdict);
    expect([verdict(2.6)[0], verdict(2.61)[0], verdict(2.6)[1]]).to.deep.equal(["ok", "missed", "not run"]);
  });

  it("judges by the workload with the worse ratio, and by the only one that was measured", () => {
    const v = (seconds: number) =>
      [
        { ...script, work: "V", seconds: 1 },
        { ...kcore(seconds), work: "V" },
      ] as const;
    const shown = (...cells: Results["cells"]) => rows(script, kcore(2.4), ...cells)[0];
    expect([shown(...v(1.5)), shown(...v(1.1)), shown()].map((row) => `${row?.work} ${row?.ratio}`)).to.deep.equal([
      "V 1.50×",
      "W 1.20×",
      "W 1.20×",
    ]);
  });
});
