import type { Exit } from "./host.ts";

/** Wraps a command for sh, with marks for its start and its exit status: without marks, a status 255 and a failure of ssh look alike. */
export function frameCommand(command: string, mark: string): string {
  const script = `echo ${mark}; /bin/sh -c "$0"; s=$?; printf "\\n${mark} %s\\n" "$s" >&2; exit "$s"`;
  return `exec /bin/sh -c '${script}' '${command.replaceAll("'", String.raw`'\''`)}'`;
}

/** Passes on the output after the mark, and drops the output of start-up files of the login shell before it. */
export function outputAfter(mark: string, onFound: () => void): (chunk: Buffer) => Buffer {
  let before: Buffer | undefined = Buffer.alloc(0);
  return (chunk) => {
    if (before === undefined) return chunk;
    before = Buffer.concat([before, chunk]);
    const at = before.indexOf(mark);
    if (at === -1) {
      before = before.subarray(-(mark.length - 1));
      return Buffer.alloc(0);
    }
    const rest = before.subarray(at + mark.length);
    before = undefined;
    onFound();
    return rest;
  };
}

/** The command's exit status, and its stderr without the mark of its end; without that mark the outcome is unknown. */
export function exitIn(stderr: string, mark: string): { readonly exit: Exit; readonly stderr: string } {
  const found = new RegExp(`\\n${mark} (\\d+)\\n`).exec(stderr);
  if (!found) return { exit: {}, stderr };
  return {
    exit: { code: Number(found[1]) },
    stderr: stderr.slice(0, found.index) + stderr.slice(found.index + found[0].length),
  };
}

/**
 * Passes on the bytes before the mark, and drops the rest. Bytes that may begin the mark are held until more arrive; a call without a
 * chunk ends the stream and gives the held bytes.
 */
export function outputBefore(mark: string, onFound?: () => void): (chunk?: Buffer) => Buffer {
  let kept = Buffer.alloc(0);
  let isFound = false;
  return (chunk) => {
    if (isFound) return Buffer.alloc(0);
    const all = chunk ? Buffer.concat([kept, chunk]) : kept;
    const at = all.indexOf(mark);
    isFound = at >= 0;
    if (isFound) onFound?.();
    let length = isFound || !chunk ? 0 : Math.min(mark.length - 1, all.length);
    while (length > 0 && !mark.startsWith(all.toString("latin1", all.length - length))) length -= 1;
    kept = Buffer.from(all.subarray(all.length - length));
    return all.subarray(0, isFound ? at : all.length - length);
  };
}
