import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { StepRun } from "./steps.ts";

/** A module's row in the table of platforms of docs/modules.md. */
export interface PlatformRow {
  readonly debian: string;
  readonly busybox: string;
  readonly nixos: string;
}

/** The rows by module. */
export function readPlatforms(): ReadonlyMap<string, PlatformRow> {
  const page = readFileSync(join(import.meta.dirname, "../../docs/modules.md"), "utf8");
  const table = page.slice(page.indexOf("\n## Platforms\n"));
  return new Map(
    Array.from(
      table.matchAll(/^\| ([a-z_]+\.\w+) +\| (.+?) +\| (.+?) +\| (.+?) +\|$/gm),
      ([, module = "", debian = "", busybox = "", nixos = ""]) => [module, { debian, busybox, nixos }],
    ),
  );
}

/** The table's words for a missing program or feature. */
export const noneOf = (what: string): string => `refuses: no \`${what}\``;

/** The cell of the table for a module that came to these ends. */
export const cellOf = (ends: readonly string[]): string => [...new Set(ends)].join("; ");

/** The end of a dry run, in the table's words. */
export function endOf({ outcome, problem }: Pick<StepRun, "outcome" | "problem">): string {
  if (outcome !== "failed") return "converges";
  if (problem?.code === "NIXOS_MANAGED") return "refuses: made by NixOS";
  const [, folder] = /^the folder (\S+) does not exist/.exec(problem?.message ?? "") ?? [];
  if (folder !== undefined) return noneOf(folder);
  const [, tool] = /^(?:neither |no )?([\w-]+(?: service)?)/.exec(problem?.message ?? "") ?? [];
  if (problem?.code === "TOOL_MISSING" && tool !== undefined) return noneOf(tool);
  return `not tried (\`${problem?.code ?? outcome}\`)`;
}
