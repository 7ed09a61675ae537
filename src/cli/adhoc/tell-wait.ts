import type { RunEvent } from "#engine/events/event.ts";

/** Says on stderr that a node lets us wait, for commands that show nothing of their run. */
export function tellWait(event: RunEvent): void {
  if (event.type === "node.waiting") process.stderr.write(`${event.node}: ${event.reason}\n`);
}
