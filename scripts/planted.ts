import { join } from "node:path";
import { parseArgs } from "node:util";
import { duplicateNames, readFaults } from "./planted/faults.ts";
import type { Fault } from "./planted/faults.ts";
import { Copy } from "./planted/plant.ts";
import type { Planted } from "./planted/plant.ts";

/**
 * npm run test:planted: plants each fault of test/planted/ in a copy of the tree, and runs the tests that must find the fault. `--jobs`
 * copies (by default one) hold one fault each at a time. `--area`, `--file` and `--name` choose faults, `--list` only lists them.
 * Exits 1 unless each fault is found.
 */
const root = join(import.meta.dirname, "..");
const { values } = parseArgs({
  options: {
    name: { type: "string", multiple: true },
    file: { type: "string" },
    area: { type: "string", multiple: true },
    jobs: { type: "string", default: "1" },
    list: { type: "boolean" },
  },
});

const faults = readFaults(root).filter(
  ({ name, file, area }) =>
    (values.name?.includes(name) ?? true) &&
    (values.area?.includes(area) ?? true) &&
    (!values.file || file === values.file),
);
const twice = duplicateNames(faults);
if (twice.length > 0) throw new Error(`more than one fault is named ${twice.join(", ")}`);
if (faults.length === 0) throw new Error("there is no such fault; --list shows them");
if (values.list) {
  for (const { area, name, file, why } of faults) console.log(`${area}  ${name}  ${file}: ${why}`);
  process.exit(0);
}

const green: Parameters<typeof Copy.make>[1] = new Map();
const copies: Copy[] = [];
const clear = () => Promise.all(copies.map((copy) => copy.remove()));
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void clear().finally(() => process.exit(130)));

const results: { readonly fault: Fault; readonly planted: Planted }[] = [];
const queue = faults.values();
async function work(): Promise<void> {
  const copy = await Copy.make(root, green);
  copies.push(copy);
  for (const fault of queue) {
    const planted = await copy.plant(fault);
    results.push({ fault, planted });
    const { outcome, said, cpu } = planted;
    console.log(`${outcome.padEnd(14)} ${cpu.toFixed(1).padStart(5)} s  ${fault.area}/${fault.name}  ${said}`);
  }
}
try {
  await Promise.all(Array.from({ length: Number(values.jobs) }, work));
} finally {
  await clear();
}

const rows = Map.groupBy(results, ({ fault }) => fault.area);
console.log("\n| area | faults | found | CPU |\n|---|---:|---:|---:|");
const row = (area: string, of: typeof results): void => {
  const found = of.filter(({ planted }) => planted.outcome === "found").length;
  const cpu = of.reduce((sum, { planted }) => sum + planted.cpu, 0);
  console.log(`| ${area} | ${of.length} | ${found} | ${cpu.toFixed(0)} s |`);
};
for (const [area, of] of rows) row(area, of);
row("all", results);
const missed = results.filter(({ planted }) => planted.outcome !== "found");
for (const { fault, planted } of missed)
  console.log(
    `\n${planted.outcome}: ${fault.area}/${fault.name} (src/${fault.file})\n  ${fault.why}\n  ${planted.said}`,
  );
process.exit(missed.length > 0 ? 1 : 0);
