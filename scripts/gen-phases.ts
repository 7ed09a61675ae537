import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodeTransitions } from "../src/rollout/node-transitions.ts";
import { updateTransitions } from "../src/rollout/update-transitions.ts";
import { between, tableOf } from "./gen-security.ts";

// Draws the phases in docs/updates.md from the transition tables of the code.

const file = join(import.meta.dirname, "../docs/updates.md");

/** The page with its drawings made anew. */
export function renewPhases(page: string): string {
  const withUpdates = between(
    page,
    ["<!-- phases of an update: made by scripts/gen-phases.ts -->", "<!-- /phases of an update -->"],
    () => `\n\n${picture()}\n\n${updateTable()}\n\n`,
  );
  return between(
    withUpdates,
    ["<!-- phases of a node: made by scripts/gen-phases.ts -->", "<!-- /phases of a node -->"],
    () => `\n\n${nodeTable()}\n\n`,
  );
}

/** Each change of phase once, as a diagram that forges draw. */
function picture(): string {
  const arrows = updateTransitions.flatMap(({ from, to }) => from.map((one) => `  ${one} --> ${to}`));
  return ["```mermaid", "stateDiagram-v2", "  [*] --> pending", ...new Set(arrows), "```"].join("\n");
}

function updateTable(): string {
  const rows = updateTransitions.map(({ from, when, waits = [], to, effect }) => [
    from.join(", "),
    list(when),
    list(waits),
    to,
    list(effect ? [effect] : []),
  ]);
  return tableOf([["from", "when", "waits for", "to", "effect"], ...rows]);
}

function nodeTable(): string {
  const rows = nodeTransitions.map(({ from, on, when, to, effects = [] }) => [
    from.join(", "),
    on.map((event) => (event.includes(" ") || event === "start" ? event : `reports ${event}`)).join(", "),
    list(when ? [when] : []),
    to ?? "(the same)",
    list(effects),
  ]);
  return tableOf([["from", "event", "when", "to", "noted"], ...rows]);
}

/** The names of functions as words: `allSucceeded`, all succeeded. */
function list(functions: readonly { readonly name: string }[]): string {
  return functions.map(({ name }) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)).join(", ");
}

if (import.meta.main) writeFileSync(file, renewPhases(readFileSync(file, "utf8")));
