/**
 * A command that waits for devices that were plugged in a moment ago.
 * The kernel adds a disk some time after the machine's monitor does. Before its event, `udevadm settle` waits only for earlier events, such as
 * the removal of links.
 */
export function pluggedIn(...devices: readonly string[]): string {
  return `udevadm settle && udevadm wait --timeout=60 ${devices.join(" ")}`;
}
