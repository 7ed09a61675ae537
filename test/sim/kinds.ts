import type { MergeKind } from "#crdt/merge-kind.ts";
import type { Register } from "#crdt/register.ts";

/** The merge kind of a simulated key: one prefix or suffix for each kind that the controller has. */
export function mergeKindOf(key: string): MergeKind {
  if (key.startsWith("conflict/")) return "remove-wins";
  if (/^node\/[^/]+\/reject\//.test(key)) return "remove-wins";
  if (key.startsWith("approval/") || key.endsWith("/approval")) return "approval";
  if (key.startsWith("owner/")) return "epoch";
  if (key.startsWith("grow/")) return "first";
  return "lww";
}

/** Whether write `a` wins over `b` or is equal, stated a second time by the documentation: the oracle must not trust the code under test. */
export function isAtLeast(key: string, a: Register, b: Register): boolean {
  const isFirst = mergeKindOf(key) === "first" && a.text !== null;
  if (mergeKindOf(key) === "first" && (a.text === null) !== (b.text === null)) return b.text === null;
  const [x, y] = isFirst ? [rankOf(key, b), rankOf(key, a)] : [rankOf(key, a), rankOf(key, b)];
  for (const [index, value] of x.entries()) if (value !== y[index]) return value > (y[index] as number | string);
  return true;
}

function rankOf(key: string, { text, ms, c, o }: Register): readonly (number | string)[] {
  const value = text === null ? undefined : (JSON.parse(text) as { readonly epoch?: number; readonly state?: string });
  const isDeleted = text === null ? 1 : 0;
  switch (mergeKindOf(key)) {
    case "lww":
    case "first":
      return [ms, c, o];
    case "approval":
      return [value?.epoch ?? -1, value?.state === "rejected" ? 2 : value?.state === "approved" ? 1 : 0, ms, c, o];
    case "generation": // No key of this simulator has it.
    case "epoch":
      return [isDeleted, value?.epoch ?? -1, ms, c, o];
    case "remove-wins":
      return [isDeleted, ms, c, o];
  }
}
