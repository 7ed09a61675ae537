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

  it("calls a goal missed when the figure is beyond it, and not run when there is none", () => {
    const verdict = (seconds: number) => {
      const cell = { phase: "B", nodes: 50, rtt: 0, rounds: 1, bastion: 1, targets: 1 } as const;
      const script = { ...cell, contender: "script", seconds: 2 } as const;
      const cells = [script, { ...cell, contender: "kcore", seconds } as const];
      const results: Results = { date: "", machine: "", rounds: 1, cells, exact: [], memory: [] };
      return rowsOf(results).map((row) => row.verdict);
    };
    expect([verdict(3)[0], verdict(3.01)[0], verdict(3)[1]]).to.deep.equal(["ok", "missed", "not run"]);
  });
});
