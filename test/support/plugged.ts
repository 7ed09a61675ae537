/**
 * A command that waits until these devices, plugged in a moment ago, are there. The kernel takes a disk in some time after the machine's monitor
 * has: until its event, `udevadm settle` has nothing to wait for but what went before, which are the links of what was taken out.
 */
export function pluggedIn(...devices: readonly string[]): string {
  return `udevadm settle && udevadm wait --timeout=60 ${devices.join(" ")}`;
}
