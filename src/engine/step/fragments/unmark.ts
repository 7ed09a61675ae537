import { sh, type Sh } from "../sh.ts";

/**
 * Removes the mark files that the words `marks` name. The device's contents are flushed before the removal, and the removal
 * before the step ends: a mark that reappeared after a power cut would let the next run overwrite the device.
 */
export function unmark(marks: Sh): Sh {
  return sh`sync && rm -f ${marks} && sync || exit 1`;
}
