import type { RunTasks } from "#base/tasks.ts";
import { isScreen } from "./choose-view.ts";

/** Runs work of the bastion, and shows it on stderr; silent for `-o json`. */
export async function shownTasks(output?: string): Promise<RunTasks> {
  // Only long work needs listr2.
  const { bastionTasks } = await import("#tui/tasks.ts");
  return bastionTasks({ out: process.stderr, isScreen: isScreen(process.stderr), isSilent: output === "json" });
}
