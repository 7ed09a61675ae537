import { readFileSync } from "node:fs";
import { replaceFileSync } from "#base/file.ts";
import { readFacts } from "#engine/facts/node-files.ts";
import type { TargetFacts } from "./roster.ts";
import { factValues, type FactValue } from "#engine/facts/paths.ts";
import type { NodeFacts } from "#engine/facts/shape.ts";
import { matchesGlob } from "./patterns.ts";
import type { FactOperator, FactTerm } from "./target-syntax.ts";

export interface KeptFactsOptions {
  readonly project: string;
  /** Facts gathered before this time, in milliseconds since the epoch, are ignored. */
  readonly since: number;
  /** Leaves out nodes whose facts are unknown; otherwise such a node is an error. */
  readonly skipUnknown?: boolean;
  /**
   * A file that keeps the decisions. A resumed run reads it, so that it has the same nodes though their facts
   * changed meanwhile.
   */
  readonly decided?: { readonly file: string; readonly isResumed: boolean };
}

type Decisions = Record<string, Readonly<Record<string, boolean>>>;

/** The default age up to which kept facts count, in milliseconds. */
export const FACTS_AGE = 7 * 86_400_000;

/** Judges fact terms of targets by the facts that `kcore facts` and runs kept in `.kcore/facts`. */
export function keptFacts({ project, since, skipUnknown = false, decided }: KeptFactsOptions): TargetFacts {
  const decisions = decided?.isResumed ? readDecisions(decided.file) : {};
  return {
    skipUnknown,
    matches: (term, nodes) => {
      if (!Object.hasOwn(decisions, term.text)) {
        const known = nodes.flatMap((name) => {
          const kept = readFacts(project, name);
          return kept !== undefined && kept.gathered >= since ? [[name, holdsFor(term, kept.facts)] as const] : [];
        });
        decisions[term.text] = Object.fromEntries(known);
        if (decided) replaceFileSync(decided.file, `${JSON.stringify(decisions)}\n`);
      }
      return new Map(Object.entries(decisions[term.text] ?? {}));
    },
  };
}

function readDecisions(file: string): Decisions {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Decisions;
  } catch {
    return {};
  }
}

/**
 * Whether a fact term is true for these facts. In a list one matching item suffices; for `!=` no item may match.
 * A fact without a comparison is true unless it is null, false, 0, the empty text or an empty list.
 */
function holdsFor({ name, compare }: FactTerm, facts: NodeFacts): boolean {
  const values = factValues(facts, name);
  if (compare === undefined) return values.some(Boolean);
  const { operator, value } = compare;
  if (operator === "=") return values.some((found) => matchesGlob(value, String(found)));
  if (operator === "!=") return !values.some((found) => matchesGlob(value, String(found)));
  return values.some((found) => satisfiesOrder(found, operator, value));
}

/** Compares numbers, and versions part by part: 12.9 < 12.10. Of `6.1.0-18-amd64`, only the dotted numbers at the beginning count. */
function satisfiesOrder(found: FactValue, operator: Exclude<FactOperator, "=" | "!=">, value: string): boolean {
  const [version] = /^\d+(\.\d+)*/.exec(String(found)) ?? [];
  if (version === undefined) return false;
  const order = compareVersions(version, value);
  if (order === 0) return operator.endsWith("=");
  return operator.startsWith(">") ? order > 0 : order < 0;
}

function compareVersions(a: string, b: string): number {
  const [left, right] = [a.split(".").map(Number), b.split(".").map(Number)];
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const difference = (left[at] ?? 0) - (right[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
