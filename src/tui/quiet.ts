import type { WorkItem } from "./work-item.ts";

/** The reason to look at a running step: slower than in earlier runs, or long without output. */
export type Quiet =
  { readonly kind: "slow"; readonly usual: number } | { readonly kind: "silent"; readonly since: number };

/** Milliseconds without output after which a running step counts as silent. */
export const silentAfter = 45_000;

/**
 * The marker of a quiet step. `usual`: milliseconds by `${module} ${title}` that nine of ten earlier runs did not exceed; slow is
 * half as much again and at least two seconds more.
 */
export function quietOf(item: WorkItem, now: number, usual?: ReadonlyMap<string, number>): Quiet | undefined {
  if (item.outcome !== undefined) return undefined;
  const heard = Math.max(item.startedAt, item.heardAt ?? 0);
  if (now - heard >= silentAfter) return { kind: "silent", since: heard };
  const before = usual?.get(`${item.module} ${item.title}`);
  if (before === undefined) return undefined;
  return now - item.startedAt > Math.max(before * 1.5, before + 2000) ? { kind: "slow", usual: before } : undefined;
}
