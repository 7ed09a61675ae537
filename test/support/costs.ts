import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Cost } from "./catalogue.ts";

const page = (): string => readFileSync(join(import.meta.dirname, "../../docs/performance.md"), "utf8");

/** The processes that a step of each sample starts on a node, as docs/performance.md says. */
export function readCosts(): ReadonlyMap<string, Cost> {
  return new Map(
    Array.from(
      page().matchAll(/^\| ([a-z_]+\.[\w ]+?) +\| +(\d+) +\| +(\d+|-) +\|/gm),
      ([, id = "", unchanged, changed]) => [id, { unchanged: Number(unchanged), changed: Number(changed) }],
    ),
  );
}

/** The modules whose processes the catalogue does not count, each with the file of its test, as docs/performance.md says. */
export function readUncounted(): ReadonlyMap<string, string> {
  return new Map(
    Array.from(
      page().matchAll(/^\| ([a-z_]+\.\w+) +\| `(test\/(?:lab|integration)\/[\w/-]+\.test\.ts)` +\|/gm),
      ([, module = "", file = ""]) => [module, file],
    ),
  );
}
