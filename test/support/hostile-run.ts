import type { RunEvent } from "#engine/events/event.ts";
import { recordedRun } from "./recorded-runs.ts";

/** Text that would do harm if a browser parsed it as markup (S-4). */
export const hostile = `</script></pre></details><img src=http://127.0.0.1:9/x onerror="document.title='taken'"><script>document.title='taken'</script><svg onload=alert(1)>\u202e\u200f\u0007`;

/** A run in which every text from nodes and files is hostile. */
export function hostileRun(): readonly RunEvent[] {
  const hostileKeys = new Set([
    "text",
    "message",
    "hint",
    "title",
    "reason",
    "want",
    "have",
    "diff",
    "module",
    "command",
    "who",
    "milestone",
    "file",
  ]);
  return recordedRun("failed").map(
    (event) =>
      JSON.parse(
        JSON.stringify(event, (key, value: unknown) =>
          typeof value === "string" && hostileKeys.has(key) ? `${value}${hostile}` : value,
        ),
      ) as RunEvent,
  );
}
