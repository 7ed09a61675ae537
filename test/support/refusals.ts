import { readFileSync } from "node:fs";
import type { Step } from "#engine/step/define.ts";

/** The functions of step-functions.sh, step.sh and files.sh, by name. */
const functions = new Map(
  ["step-functions", "step", "files"].flatMap((name) => {
    const text = readFileSync(new URL(`../../src/engine/program/${name}.sh`, import.meta.url), "utf8");
    return [...text.matchAll(/^(\w+)\(\) \{\n([^]*?)^\}/gm)].map(
      ([, called = "", body = ""]) => [called, body] as const,
    );
  }),
);

/** The codes that a text may `refuse` with, directly or in a library function that it calls. */
export function refusalsIn(text: string): ReadonlySet<string> {
  const found = new Set<string>();
  const seen = new Set<string>();
  const read = (part: string): void => {
    for (const [, code = ""] of part.matchAll(/\b(?:refuse|orRefuse\([^"]*) "?([A-Z]+_[A-Z_]+)\b/g)) found.add(code);
    for (const [name, body] of functions)
      if (!seen.has(name) && new RegExp(`(?<![\\w-])${name} `).test(part)) {
        seen.add(name);
        read(body);
      }
  };
  read(text);
  return found;
}

/** As refusalsIn, for all texts of a step. */
export function refusalsOf({ probe, guard, asks, apply, react, show }: Step): ReadonlySet<string> {
  return refusalsIn([probe, guard, asks, apply, react, show].map(String).join("\n"));
}
