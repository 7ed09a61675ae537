import { formatEvent } from "#engine/events/recording.ts";
import type { RunDrawing } from "./drawing.ts";

/** `--output json`: each event on a line of its own, as it happened and as it is recorded. */
export function createJsonView(write: (text: string) => void): RunDrawing {
  return { draw: (event) => write(formatEvent(event)) };
}
