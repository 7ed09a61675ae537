import { formatDuration } from "#base/units.ts";
import { cleanText } from "#engine/events/clean.ts";
import { factAt, selectFact } from "#engine/facts/paths.ts";
import type { NodeFacts } from "#engine/facts/shape.ts";
import type { Problem } from "#errors/problem.ts";
import { formatTable } from "../terminal/format-table.ts";

/** The facts of one node, or the reason why there are none. */
export interface FactsAnswer {
  readonly node: string;
  readonly facts?: NodeFacts;
  /** The time of the facts, in milliseconds since the epoch; absent for facts of now. */
  readonly gathered?: number;
  readonly outcome?: string;
  readonly problem?: Problem;
}

/** A fact whose values differ between nodes. */
export interface FactDifference {
  readonly fact: string;
  /** By node; null for a node without the fact. */
  readonly values: Readonly<Record<string, unknown>>;
}

/** Each node with those of its facts that have a value. */
export function drawFacts(nodes: readonly FactsAnswer[], now: number): string {
  return nodes
    .map(({ node, facts = {}, gathered, ...end }) => {
      const age = gathered === undefined ? "" : `  (${formatDuration(Math.max(0, now - gathered))} ago)`;
      const lines = flatten(facts).filter(([, value]) => value !== null);
      return [
        `${node}${age}${failureNote(end)}`,
        ...lines.map(([path, value]) => cleanText(`  ${path}: ${formatValue(value)}`)),
      ];
    })
    .map((lines) => `${lines.join("\n")}\n`)
    .join("");
}

/** A row for each node, a column for each path. */
export function drawPaths(nodes: readonly FactsAnswer[], paths: readonly string[]): string {
  const rows = nodes.map(({ node, facts, ...end }) =>
    facts === undefined
      ? [`${node}${failureNote(end)}`]
      : [node, ...paths.map((path) => formatValue(selectFact(facts, path) ?? null))],
  );
  return formatTable(
    ["NODE", ...paths],
    rows.map((row) => [...row, ...paths.map(() => "")].slice(0, paths.length + 1)),
  );
}

/** The values of a node's facts by path; null for an unknown path. */
export function valuesAt(facts: NodeFacts, paths: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(paths.map((path) => [path, selectFact(facts, path) ?? null]));
}

/** The facts whose values differ between nodes: those at or below `paths`; without paths, all that are not volatile. */
export function differingFacts(nodes: readonly FactsAnswer[], paths: readonly string[]): readonly FactDifference[] {
  const flat = nodes.map(({ node, facts = {} }) => [node, new Map(flatten(facts))] as const);
  const names = [...new Set(flat.flatMap(([, facts]) => [...facts.keys()]))];
  const isWanted = (name: string) =>
    paths.length > 0
      ? paths.some((path) => name === path || name.startsWith(`${path}.`))
      : factAt(name)?.isVolatile !== true;
  return names.filter(isWanted).flatMap((fact) => {
    const values = flat.map(([node, facts]) => [node, facts.get(fact) ?? null] as const);
    const distinct = new Set(values.map(([, value]) => JSON.stringify(value)));
    return distinct.size > 1 ? [{ fact, values: Object.fromEntries(values) }] : [];
  });
}

/** A row for each differing fact, a column for each node. */
export function drawDifferences(nodes: readonly string[], differences: readonly FactDifference[]): string {
  if (differences.length === 0) return "no differences\n";
  const rows = differences.map(({ fact, values }) => [fact, ...nodes.map((node) => formatValue(values[node]))]);
  return formatTable(["FACT", ...nodes], rows);
}

function failureNote({ outcome, problem }: Pick<FactsAnswer, "outcome" | "problem">): string {
  return outcome === undefined ? "" : cleanText(`  ${problem?.message ?? outcome}`);
}

/** Every value below `value` with its path; a list of plain values is one value. */
function flatten(value: unknown, path = ""): readonly (readonly [string, unknown])[] {
  if (typeof value !== "object" || value === null) return [[path, value]];
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) return [[path, value]];
  return Object.entries(value).flatMap(([key, item]) => flatten(item, path === "" ? key : `${path}.${key}`));
}

function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) return value.join(", ") || "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value as string | number | boolean);
}
