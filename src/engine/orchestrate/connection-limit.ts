import { HostUnreachable } from "#engine/transport/unreachable.ts";
import type { Part } from "./plan.ts";

/** Open files that the run needs beside its nodes: its record, their logs, the views, what is being loaded. */
const reserve = 64;
/** A node's connection, and one that an action opens for it. */
const perNode = 2;
/** Below that there is no use in counting. */
const least = 4;

/** How many nodes may be connected at a time where so many files may be open (F-30). */
export function connectionsFor(openFiles = Infinity): number {
  return Math.max(least, Math.floor((openFiles - reserve) / perNode));
}

/** How many nodes the parts would have connected at a time, if there were room. */
export function widthOf(parts: readonly Part[], concurrency: number): number {
  const blocks = parts.filter((part) => part.kind === "block");
  const widest = blocks.flatMap(({ batches, pace }) =>
    batches.map(({ length }) => Math.min(length, pace.concurrency ?? concurrency)),
  );
  // Between two parts every node keeps its connection, and its lock.
  const [first] = blocks;
  return Math.max(0, ...widest, blocks.length > 1 ? new Set(first?.batches.flat()).size : 0);
}

/** Whether this machine would open no further file for us. */
export function isOutOfFiles(error: unknown): boolean {
  return error instanceof HostUnreachable && error.reason === "files";
}
