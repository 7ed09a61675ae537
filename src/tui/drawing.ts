import type { RunEvent } from "#engine/events/event.ts";

/** A view: draws events as they come. */
export interface RunDrawing {
  draw(event: RunEvent): void;
}
