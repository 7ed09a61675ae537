import type { RunEvent } from "#engine/events/event.ts";
import { formatEvent } from "#engine/events/recording.ts";
import { escapeControls } from "#errors/draw.ts";

/** A view: draws events as they come. */
export interface RunDrawing {
  draw(event: RunEvent): void;
}

/** `--output json`: each event on a line of its own, as it is recorded; a CI finds no commands in the lines. */
export function createJsonView(write: (text: string) => void): RunDrawing {
  return { draw: (event) => write(escapeControls(formatEvent(event))) };
}
