import { closeSync, openSync } from "node:fs";

/** Times that it is tried, and milliseconds between two of them. */
const tries = 100;
const pause = 10;

/** What may happen between two tries, where a test says so. */
export interface ReopenParts {
  readonly open?: (file: string) => number;
  readonly wait?: () => void;
}

/**
 * Makes an open descriptor one that appends to the file. The lowest free one is taken (POSIX, open), so it is closed first; where another thread
 * (a file that is read in the background) is faster, that one's end is waited for, a second at most. Nothing of ours runs meanwhile.
 * @throws Error when somebody keeps the descriptor
 */
export function reopen(descriptor: number, file: string, { open = openLog, wait = sleep }: ReopenParts = {}): void {
  closeSync(descriptor);
  const others: number[] = [];
  try {
    while (others.length < tries) {
      const got = open(file);
      if (got === descriptor) return;
      others.push(got);
      wait();
    }
    throw new Error(`descriptor ${descriptor} was taken`);
  } finally {
    for (const other of others) closeSync(other);
  }
}

function openLog(file: string): number {
  return openSync(file, "a", 0o600);
}

function sleep(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause);
}
