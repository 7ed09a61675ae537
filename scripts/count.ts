import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Adds up the counts that `report.cjs` left in a folder, and prints the closing line. Exits 1 when anything failed. */
const folder = process.argv[2] ?? ".";
const sum = [0, 0, 0];
for (const name of readdirSync(folder))
  for (const [index, count] of readFileSync(join(folder, name), "utf8").trim().split(" ").entries())
    sum[index] = (sum[index] ?? 0) + Number(count);
const [passed = 0, failed = 0, skipped = 0] = sum;
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
