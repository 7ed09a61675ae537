import { formatEvent } from "#engine/events/recording.ts";
import { escapeControls } from "#errors/draw.ts";
import type { RunDrawing } from "./drawing.ts";

/** `--output json`: each event on a line of its own, as it happened and as it is recorded; nothing in it speaks to a CI. */
export function createJsonView(write: (text: string) => void): RunDrawing {
  return { draw: (event) => write(escapeControls(formatEvent(event))) };
}
