import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "#engine/events/event.ts";
import { parseRecording } from "#engine/events/recording.ts";

const folder = join(import.meta.dirname, "../fixtures/runs");

/** The names of all recorded runs. */
export const recordedRunNames: readonly string[] = readdirSync(folder)
  .filter((file) => file.endsWith(".ndjson"))
  .map((file) => file.slice(0, -".ndjson".length))
  .sort();

/** The events of `test/fixtures/runs/NAME.ndjson`. */
export function recordedRun(name: string): readonly RunEvent[] {
  return parseRecording(readFileSync(join(folder, `${name}.ndjson`))).events;
}
