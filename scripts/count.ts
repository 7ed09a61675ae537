import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Adds up what `report.cjs` left in a folder: tells what each suite took, which files took most and what failed, and prints the closing
 * line. Exits 1 when anything failed.
 */
interface Suite {
  readonly name: string;
  readonly passes: number;
  readonly failures: number;
  readonly pending: number;
  readonly seconds: number;
  readonly files: Readonly<Record<string, number>>;
  readonly failed: readonly string[];
}

const folder = process.argv[2] ?? ".";
const suites = readdirSync(folder).map(
  (name) => ({ name, ...JSON.parse(readFileSync(join(folder, name), "utf8")) }) as Suite,
);
const most = suites
  .flatMap(({ files }) => Object.entries(files))
  .toSorted(([, a], [, b]) => b - a)
  .slice(0, 10);
const row = (seconds: number, what: string) => console.log(`${seconds.toFixed(0).padStart(6)} s  ${what}`);
for (const { name, seconds } of suites) row(seconds, `${name}, all of it`);
for (const [file, seconds] of most) row(seconds, file);
for (const text of suites.flatMap(({ failed }) => failed)) console.log(`failed: ${text}`);

const sum = (count: "passes" | "failures" | "pending") => suites.reduce((total, suite) => total + suite[count], 0);
console.log(`${sum("passes")} passed, ${sum("failures")} failed, ${sum("pending")} skipped`);
process.exit(sum("failures") > 0 || sum("passes") === 0 ? 1 : 0);
