import { readFileSync } from "node:fs";
import { replaceFileSync } from "#base/file.ts";
import { readFacts } from "#engine/facts/cache.ts";
import { holdsFor } from "./fact-term.ts";
import type { TargetFacts } from "./roster.ts";

export interface KeptFactsOptions {
  readonly project: string;
  /** Facts that were gathered before, in milliseconds since the epoch, are not believed. */
  readonly since: number;
  /** Nodes whose facts are not known are left out, where it would be an error. */
  readonly skipUnknown?: boolean;
  /**
   * A file that keeps the decisions. A resumed run reads it, so that it has the same nodes though their facts
   * changed meanwhile.
   */
  readonly decided?: { readonly file: string; readonly isResumed: boolean };
}

type Decisions = Record<string, Readonly<Record<string, boolean>>>;

/** How old kept facts may be where nothing else is said: milliseconds. */
export const FACTS_AGE = 7 * 86_400_000;

/** Judges fact terms of targets by the facts that `kcore facts` and runs kept in `.kcore/facts`. */
export function keptFacts({ project, since, skipUnknown = false, decided }: KeptFactsOptions): TargetFacts {
  const decisions = decided?.isResumed ? readDecisions(decided.file) : {};
  return {
    skipUnknown,
    judge: (term, nodes) => {
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
