import { poll } from "#base/wait.ts";
import { defineAction } from "#engine/orchestrate/action.ts";
import { MaintenanceWindow } from "#rollout/spec.ts";
import { isInWindow } from "#rollout/window.ts";

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
  args: MaintenanceWindow,
  async run(window, { signal, note }) {
    if (!isInWindow(window, Date.now())) note(`waits for the maintenance window, from ${window.from} UTC`);
    await poll(() => isInWindow(window, Date.now()), { everyMs: 10_000, signal });
    return { changed: false, outputs: {} };
  },
  plan(window, { note }) {
    note(isInWindow(window, Date.now()) ? "the maintenance window is open" : `would wait until ${window.from} UTC`);
    return Promise.resolve({ changed: false, outputs: {} });
  },
});
