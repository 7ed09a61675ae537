import { sh, type Sh } from "../sh.ts";

/**
 * Removes marks, given as words, of what is begun or new. What was made is on the disk before they go, and their end before anybody uses it:
 * after a power cut a mark that came back would have it made once more, with what is in it by then.
 */
export function unmark(marks: Sh): Sh {
  return sh`sync && rm -f ${marks} && sync || exit 1`;
}
