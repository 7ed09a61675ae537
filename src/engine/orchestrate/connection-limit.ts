import { HostUnreachable } from "#engine/transport/host-problems.ts";
import type { RunSection } from "./plan.ts";

/** Open files that the run needs beside its nodes: its record, nodes' logs, views, files being loaded. */
const reservedFiles = 64;
/** Open files of a node: its connection, and one that an action opens for it. */
const filesPerNode = 2;
/** The least limit, however few files may be open. */
const minConnections = 4;

/** The number of nodes that may be connected at a time under this limit of open files (F-30). */
export function connectionsFor(openFiles = Infinity): number {
  return Math.max(minConnections, Math.floor((openFiles - reservedFiles) / filesPerNode));
}

/** The number of nodes that the sections would connect at a time, if open files had no limit. */
export function mostAtOnce(sections: readonly RunSection[], concurrency: number): number {
  const blocks = sections.filter((section) => section.kind === "block");
  const widest = blocks.flatMap(({ batches, pace }) =>
    batches.map(({ length }) => Math.min(length, pace.concurrency ?? concurrency)),
  );
  // Between two sections every node keeps its connection and its lock.
  const [first] = blocks;
  return Math.max(0, ...widest, blocks.length > 1 ? new Set(first?.batches.flat()).size : 0);
}

/** Whether a connection failed because the bastion opens no further file for kcore. */
export function isOutOfFiles(error: unknown): boolean {
  return error instanceof HostUnreachable && error.reason === "files";
}
