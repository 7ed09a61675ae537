import { formatEvent } from "#engine/events/recording.ts";
import { escapeControls } from "#errors/draw.ts";
import type { RunDrawing } from "./drawing.ts";

/** `--output json`: each event on a line of its own, as it is recorded; a CI finds no commands in the lines. */
export function createJsonView(write: (text: string) => void): RunDrawing {
  return { draw: (event) => write(escapeControls(formatEvent(event))) };
}
