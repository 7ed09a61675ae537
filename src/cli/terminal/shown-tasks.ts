import type { RunTasks } from "#base/tasks.ts";
import { isScreen } from "./choose-view.ts";

/** The runner of tasks on the bastion, which shows them on stderr; silent for `-o json`. */
export function shownTasks(output?: string): RunTasks {
  return async (tasks) => {
    if (tasks.length === 0) return;
    // listr2 is loaded only if there is work to show.
    const { bastionTasks } = await import("#tui/tasks.ts");
    const { stderr: out } = process;
    await bastionTasks({ out, isScreen: isScreen(out), isSilent: output === "json" })(tasks);
  };
}
