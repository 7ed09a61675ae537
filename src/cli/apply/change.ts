import { isDeepStrictEqual } from "node:util";
import type { Canvas } from "../layout/draw-plan.ts";
import type { Refusal } from "../layout/reasons.ts";
import type { InstallFlags } from "../install/install-node.ts";
import type { ClusterFlags } from "../options.ts";

export type Outcome = "created" | "updated" | "unchanged" | "refused";

/** One value that applying a manifest would change. */
export interface Difference {
  /** Where: `roster`, `cluster`, `context`, on the `node` itself. */
  readonly in: "roster" | "cluster" | "context" | "node";
  readonly field: string;
  readonly have: unknown;
  readonly want: unknown;
}

/** What a manifest means here and now, and how it is done. */
export interface Change {
  readonly outcome: Outcome;
  readonly differences: readonly Difference[];
  /** Said to the operator besides: what could not be looked at, what comes next. */
  readonly notes: readonly string[];
  /** What a person is shown of it first. */
  readonly picture?: (canvas: Canvas) => string;
  /** What it is all the same, when somebody at the terminal grants what was refused. */
  readonly whenGranted?: Outcome;
  /** Why it is refused. */
  readonly refusals?: readonly Refusal[];
  /** What `-o json` tells of it besides. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** Does it. May end with another exit code than 0: that of a run. @throws KcoreError where it is refused */
  readonly perform: () => Promise<number>;
}

/** The fields of `want` that `have` says otherwise; what is not wanted is left alone. */
export function differencesOf(
  place: Difference["in"],
  have: Readonly<Record<string, unknown>>,
  want: Readonly<Record<string, unknown>>,
): readonly Difference[] {
  return Object.entries(want).flatMap(([field, value]): Difference[] =>
    isDeepStrictEqual(plain(have[field]), plain(value)) ? [] : [{ in: place, field, have: have[field], want: value }],
  );
}

/** As JSON would give it back: without prototypes, what is undefined left out. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}

/** `+` for what was not there, `-` for what goes, `~` for what changes. */
export function drawDifference({ in: place, field, have, want }: Difference): string {
  const [before, after] = [shown(have), shown(want)];
  if (before === undefined) return `  + ${place} ${field}: ${after ?? ""}`;
  return after === undefined ? `  - ${place} ${field}: ${before}` : `  ~ ${place} ${field}: ${before} -> ${after}`;
}

function shown(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : typeof value === "string" ? value : JSON.stringify(value);
}

/** Flags of `kcore apply` and `kcore diff`; `result`: how they print what came of it. */
export type ApplyFlags = ClusterFlags &
  InstallFlags & { readonly bundle?: string; readonly result: "table" | "json" | "yaml" };
