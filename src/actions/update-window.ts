import { setTimeout as sleep } from "node:timers/promises";
import { defineAction } from "#engine/orchestrate/action.ts";
import { Window } from "#rollout/spec.ts";
import { isInWindow } from "#rollout/window.ts";

const pauseMs = 10_000;

/**
 * Waits until a maintenance window is open. A dry run says whether it is.
 * ```yaml
 * - { id: window, run: update.window, from: "22:00", to: "04:00", days: [mon, tue], each: "{{params.nodes}}", timeout: 7d }
 * ```
 */
export const updateWindow = defineAction({
  name: "update.window",
  summary: "Waits until a maintenance window, in UTC, is open.",
  outputs: [],
  args: Window,
  async run(window, { signal, note }) {
    if (!isInWindow(window, Date.now())) note(`waits for the maintenance window, from ${window.from} UTC`);
    while (!isInWindow(window, Date.now())) await sleep(pauseMs, undefined, { signal });
    return { changed: false, outputs: {} };
  },
  plan(window, { note }) {
    note(isInWindow(window, Date.now()) ? "the maintenance window is open" : `would wait until ${window.from} UTC`);
    return Promise.resolve({ changed: false, outputs: {} });
  },
});
