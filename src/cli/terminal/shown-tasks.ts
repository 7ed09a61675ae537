import type { RunTasks } from "#base/tasks.ts";
import { isScreen } from "./choose-view.ts";

/** Runs work of the bastion, and shows it on stderr; silent for `-o json`. */
export function shownTasks(output?: string): RunTasks {
  return async (tasks) => {
    if (tasks.length === 0) return;
    // Only long work needs listr2.
    const { bastionTasks } = await import("#tui/tasks.ts");
    const { stderr: out } = process;
    await bastionTasks({ out, isScreen: isScreen(out), isSilent: output === "json" })(tasks);
  };
}
