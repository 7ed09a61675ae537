/** How a program ended; without `code` it was ended, by a signal or because its time was over. */
export interface Ended {
  readonly code?: number;
  readonly stdout: string;
  /** The end of what it said. */
  readonly stderr: string;
}

/** A file as it came from a controller. */
export interface BundleFile {
  readonly size: number;
  readonly sha256: string;
  /** Bytes that it is when gunzipped, as its end says. */
  readonly unpacked: number;
}

/** All that the updater does to its node, and asks of it. Each call may be the last one before the power fails. */
export interface Ports {
  /** Runs a program from the node's usual folders, with nothing else in its environment; when its time is over it is killed with all that it started. */
  readonly run: (words: readonly string[], limitMs: number) => Promise<Ended>;
  /** A text file; undefined: there is none. */
  readonly read: (path: string) => Promise<string | undefined>;
  /** Puts a file in its place as a whole, with its folder; it is on the disk when this resolves. */
  readonly replace: (path: string, text: string) => Promise<void>;
  readonly remove: (path: string) => Promise<void>;
  /** Renames a file; false: there is none. */
  readonly move: (from: string, to: string) => Promise<boolean>;
  /** Where a link leads; undefined: it is none. */
  readonly readLink: (path: string) => Promise<string | undefined>;
  /** Puts a link in its place as a whole. */
  readonly link: (target: string, path: string) => Promise<void>;
  /** Names in a folder. */
  readonly list: (folder: string) => Promise<readonly string[]>;
  readonly readBundle: (path: string) => Promise<BundleFile | undefined>;
  readonly freeBytes: (path: string) => Promise<number>;
  /** The status of what a URL answers. @throws when nothing answers in time */
  readonly ask: (url: string, limitMs: number) => Promise<number>;
  /** Ms since 1970; it may jump. */
  readonly clock: () => number;
  /** Ms since the machine was started; it does not jump, and is one for all processes. */
  readonly uptime: () => number;
  /** Another one after each boot. */
  readonly bootId: () => Promise<string>;
  readonly sleep: (ms: number) => Promise<void>;
}

/** What the updater tells of itself. */
export interface Log {
  readonly info: (message: string, fields?: Readonly<Record<string, unknown>>) => void;
  readonly warn: (message: string, fields?: Readonly<Record<string, unknown>>) => void;
}
