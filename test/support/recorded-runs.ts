import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "#engine/events/event.ts";
import { parseRecording } from "#engine/events/recording.ts";

/** The events of `test/fixtures/runs/NAME.ndjson`. */
export function recordedRun(name: string): readonly RunEvent[] {
  return parseRecording(readFileSync(join(import.meta.dirname, "../fixtures/runs", `${name}.ndjson`))).events;
}
