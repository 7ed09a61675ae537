import type { Log } from "#api/log.ts";
import type { Bundle, SignedStatement, UpdateStatement } from "#rollout/spec.ts";
import type { RolloutNode } from "#rollout/rollout-input.ts";
import type { BootState, TargetKind, UpdateStrategy } from "./strategy.ts";

/** The end of a program, and the last 16 KiB of each of its outputs; without `code` its time was over. */
export interface ProgramEnd {
  readonly code?: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The free bytes of a file system, and the number of its device. */
export interface FreeSpace {
  readonly free: number;
  readonly dev: number;
}

/** All that the updater changes and reads on its node. The power may fail after each call. */
export interface Ports {
  /**
   * Runs a program from the node's usual folders, with PATH, HOME and LC_ALL alone as its environment. At its time limit
   * it is killed with all its children.
   */
  readonly run: (words: readonly string[], limitMs: number) => Promise<ProgramEnd>;
  /** A text file; undefined: there is none. */
  readonly read: (path: string) => Promise<string | undefined>;
  /** Replaces a file atomically, and makes its folder; the file is on the disk when this resolves. */
  readonly replace: (path: string, text: string) => Promise<void>;
  readonly remove: (path: string) => Promise<void>;
  /** Renames a file; false: there is no such file. */
  readonly move: (from: string, to: string) => Promise<boolean>;
  /** A link's target; undefined for anything else. */
  readonly readLink: (path: string) => Promise<string | undefined>;
  /** Replaces a link atomically. */
  readonly link: (target: string, path: string) => Promise<void>;
  /** Names in a folder; none where it is missing. */
  readonly list: (folder: string) => Promise<readonly string[]>;
  /** Bytes of a file; undefined: there is none. */
  readonly sizeOf: (path: string) => Promise<number | undefined>;
  readonly sha256Of: (path: string) => Promise<string>;
  readonly room: (path: string) => Promise<FreeSpace>;
  /**
   * Fetches a bundle from a controller into a file, continuing an interrupted download. @throws KcoreError; the
   * signal's reason
   */
  readonly download: (bundle: Bundle, file: string, signal: AbortSignal) => Promise<void>;
  /** The HTTP status of a URL. @throws an error if no answer comes in time */
  readonly ask: (url: string, limitMs: number) => Promise<number>;
  /** Ms since 1970; it may jump. */
  readonly clock: () => number;
  /** Ms since the machine was started; it does not jump, and is the same in all processes. */
  readonly uptime: () => number;
  /** An id that each boot changes. */
  readonly bootId: () => Promise<string>;
  readonly sleep: (ms: number) => Promise<void>;
}

export type UpdaterLog = Pick<Log, "info" | "warn">;

/** The names of this node. */
export type OwnNode = Pick<RolloutNode, "id" | "hostname" | "dc">;

/** The updater's node, its log, and the functions that differ by target. */
export interface UpdaterParts {
  /** The folder of updates. */
  readonly folder: string;
  readonly ports: Ports;
  readonly log: UpdaterLog;
  readonly self: OwnNode;
  /** The contents of a statement, if this cluster's bastion signed it. @throws KcoreError */
  readonly verify: (signed: SignedStatement) => Promise<unknown>;
  /** The state of the node's runtime or NixOS system. */
  readonly present: (brings: TargetKind) => Promise<BootState>;
  /** The strategy for a statement's target. @throws UpdateFailure if this node cannot reach the target in any way */
  readonly strategyOf: (statement: UpdateStatement) => UpdateStrategy;
}
