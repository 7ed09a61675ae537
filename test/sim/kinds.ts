import type { MergeKind } from "#crdt/merge-kind.ts";

/** One kind of key of each sort, as the controller has them. */
export function mergeKindOf(key: string): MergeKind {
  if (key.startsWith("conflict/")) return "remove-wins";
  if (key.startsWith("approval/")) return "approval";
  if (key.startsWith("owner/")) return "epoch";
  if (key.startsWith("grow/")) return "first";
  return "lww";
}
