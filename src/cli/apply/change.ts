import { isDeepStrictEqual } from "node:util";
import { ApiRefusal, type ApiClient } from "#api/client.ts";
import type { Canvas } from "./draw-layout.ts";
import type { LayoutRefusal } from "#engine/layout/reasons.ts";
import type { InstallFlags } from "../install/install-node.ts";
import type { ClusterFlags } from "../options.ts";
import { clusterIfAny, type Cluster } from "../cluster/open-cluster.ts";

export type ApplyOutcome = "created" | "updated" | "unchanged" | "refused";

/** One value that applying a manifest would change. */
export interface ManifestDifference {
  /** Where the value is kept; `node`: on the machine itself. */
  readonly in: "roster" | "cluster" | "context" | "node";
  readonly field: string;
  readonly have: unknown;
  readonly want: unknown;
}

/** The changes that applying a manifest would make now to the roster, the cluster and the nodes. */
export interface ManifestChange {
  readonly outcome: ApplyOutcome;
  readonly differences: readonly ManifestDifference[];
  /** Further lines for the operator: places that could not be read, next commands. */
  readonly notes: readonly string[];
  /** A drawing, printed above the differences. */
  readonly picture?: (canvas: Canvas) => string;
  /** The outcome if the operator grants the refused disks at the terminal. */
  readonly whenGranted?: ApplyOutcome;
  /** Reasons for a refusal. */
  readonly refusals?: readonly LayoutRefusal[];
  /** Further fields of `-o json`. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** Makes the change and returns the exit code, which may be a run's. @throws KcoreError if the change is refused */
  readonly perform: () => Promise<number>;
}

/** The fields of `want` that differ in `have`; other fields of `have` do not count. */
export function differingFields(
  place: ManifestDifference["in"],
  have: Readonly<Record<string, unknown>>,
  want: Readonly<Record<string, unknown>>,
): readonly ManifestDifference[] {
  return Object.entries(want).flatMap(([field, value]): ManifestDifference[] =>
    isDeepStrictEqual(asJson(have[field]), asJson(value)) ? [] : [{ in: place, field, have: have[field], want: value }],
  );
}

/** The value as JSON gives it back: without prototypes and undefined fields. */
function asJson(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}

/** `+` for a new value, `-` for a removed one, `~` for a changed one. */
export function drawDifference({ in: place, field, have, want }: ManifestDifference): string {
  const [before, after] = [shownValue(have), shownValue(want)];
  if (before === undefined) return `  + ${place} ${field}: ${after ?? ""}`;
  return after === undefined ? `  - ${place} ${field}: ${before}` : `  ~ ${place} ${field}: ${before} -> ${after}`;
}

function shownValue(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : typeof value === "string" ? value : JSON.stringify(value);
}

/** Flags of `kcore apply` and `kcore diff`; `result`: how they print their results. */
export type ApplyFlags = ClusterFlags &
  InstallFlags & { readonly bundle?: string; readonly result: "table" | "json" | "yaml" };

/** The cluster whose controllers record manifests, or the reason why there is none yet. */
type RecordsCluster = { readonly cluster: Cluster } | { readonly none: string };

/**
 * Opens the cluster if there is one. A missing context or controller is no error, since every cluster begins without.
 * @throws KcoreError for a broken context, or an unknown one that `--context` names
 */
export async function openForRecords(flags: ClusterFlags): Promise<RecordsCluster> {
  const cluster = await clusterIfAny(flags);
  if (!cluster) return { none: "there is no cluster yet" };
  return cluster.endpoints.length > 0 ? { cluster } : { none: "the cluster has no controller yet" };
}

/** A record's value; undefined when there is none. */
export async function readManifestRecord(client: ApiClient, kind: string, name: string): Promise<unknown> {
  return (await unlessMissing(() => client.call("getObject", {}, { id: `${kind}/${name}` })))?.value;
}

/** The answer of `ask`; undefined if the controller answers 404. */
export async function unlessMissing<Answer>(ask: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ApiRefusal && error.status === 404) return undefined;
    throw error;
  }
}
