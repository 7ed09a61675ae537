import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { growthPlot } from "./plot.ts";
import type { Results } from "./results.ts";
import { exactTable, goalsTable, markdown, timesTable } from "./tables.ts";

const docs = join(import.meta.dirname, "../../docs");
export const files = {
  results: join(import.meta.dirname, "results.json"),
  page: join(docs, "performance.md"),
  plot: join(docs, "pictures/push.svg"),
} as const;

/** The page with its generated parts, each between two marks, made anew from results. */
export function renewPage(page: string, results: Results): string {
  const memory = results.memory.map(({ nodes, peak }) => `${peak.toFixed(0)} MB with ${nodes} nodes`).join(", ");
  const machine = `${results.date}, ${results.machine}, median of ${results.rounds}.${
    results.startUp === undefined ? "" : ` kcore's start-up alone: ${results.startUp.toFixed(2)} s.`
  }${memory === "" ? "" : ` The largest process of kcore at its peak: ${memory}.`}`;
  const parts = {
    machine,
    goals: markdown(goalsTable(results)),
    exact: markdown(exactTable(results)),
    times: markdown(timesTable(results)),
  };
  return Object.entries(parts).reduce((text, [name, made]) => {
    const [begin, end] = [`<!-- ${name}: made by npm run bench:push -->`, `<!-- /${name} -->`];
    const [before, rest = ""] = text.split(begin);
    const after = rest.split(end)[1];
    if (after === undefined) throw new Error(`docs/performance.md has no marks for “${name}”`);
    return `${before}${begin}\n\n${made}\n\n${end}${after}`;
  }, page);
}

export function readResults(): Results {
  return JSON.parse(readFileSync(files.results, "utf8")) as Results;
}

/** Keeps results, and makes the page and its plot of them. */
export function save(results: Results): void {
  writeFileSync(files.results, `${JSON.stringify(results, undefined, 2)}\n`);
  writeFileSync(files.page, renewPage(readFileSync(files.page, "utf8"), results));
  writeFileSync(files.plot, growthPlot(results));
}

if (import.meta.main) save(readResults());
