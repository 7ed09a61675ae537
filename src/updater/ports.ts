import type { Bundle, SignedStatement, UpdateStatement } from "#rollout/spec.ts";
import type { RolloutNode } from "#rollout/rollout-input.ts";
import type { BootState, Brings, UpdateStrategy } from "./strategy.ts";

/** The end of a program; without `code` a signal or the time limit ended it. */
export interface Ended {
  readonly code?: number;
  readonly stdout: string;
  /** The end of stderr. */
  readonly stderr: string;
}

/** The free bytes of a file system, and its device. */
export interface Room {
  readonly free: number;
  readonly dev: number;
}

/** All effects of the updater on its node, and all that it reads there. The power may fail after each call. */
export interface Ports {
  /**
   * Runs a program from the node's usual folders, in an empty environment. At its time limit it is killed with all its
   * children.
   */
  readonly run: (words: readonly string[], limitMs: number) => Promise<Ended>;
  /** A text file; undefined: there is none. */
  readonly read: (path: string) => Promise<string | undefined>;
  /** Replaces a file atomically, and makes its folder; the file is on the disk when this resolves. */
  readonly replace: (path: string, text: string) => Promise<void>;
  readonly remove: (path: string) => Promise<void>;
  /** Renames a file; false: there is none. */
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
  readonly room: (path: string) => Promise<Room>;
  /**
   * Fetches a bundle from a controller into a file, continuing a former download. @throws KcoreError; the signal's
   * reason
   */
  readonly download: (bundle: Bundle, file: string, signal: AbortSignal) => Promise<void>;
  /** The HTTP status of a URL. @throws without an answer in time */
  readonly ask: (url: string, limitMs: number) => Promise<number>;
  /** Ms since 1970; it may jump. */
  readonly clock: () => number;
  /** Ms since the machine was started; it does not jump, and is the same in all processes. */
  readonly uptime: () => number;
  /** A new id after each boot. */
  readonly bootId: () => Promise<string>;
  readonly sleep: (ms: number) => Promise<void>;
}

/** The updater's log. */
export interface Log {
  readonly info: (message: string, fields?: Readonly<Record<string, unknown>>) => void;
  readonly warn: (message: string, fields?: Readonly<Record<string, unknown>>) => void;
}

/** The names of this node. */
export type Self = Pick<RolloutNode, "id" | "hostname" | "dc">;

/** The node of an updater, and how targets are brought into use there. */
export interface UpdaterParts {
  /** The folder of updates. */
  readonly folder: string;
  readonly ports: Ports;
  readonly log: Log;
  readonly self: Self;
  /** The contents of a statement, if this cluster's bastion signed it. @throws KcoreError */
  readonly verify: (signed: SignedStatement) => Promise<unknown>;
  /** The node's runtime, or its NixOS system. */
  readonly present: (brings: Brings) => Promise<BootState>;
  /** @throws UpdateFailure when this node cannot reach the target in any way */
  readonly strategyOf: (statement: UpdateStatement) => UpdateStrategy;
}
