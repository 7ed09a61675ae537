import { sh, type Sh } from "../sh.ts";

/**
 * Removes the marks “begun” or “new” of a device, given as words. The device's contents are durable before the removal,
 * and the removal before the step ends. A mark that came back after a power cut would have the next run make the device
 * again.
 */
export function unmark(marks: Sh): Sh {
  return sh`sync && rm -f ${marks} && sync || exit 1`;
}
