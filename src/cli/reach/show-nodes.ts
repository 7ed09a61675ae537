import type { SayProgress } from "#base/tasks.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";

/** Shows a task for each node of a command, from the start of the first node's work on: until then questions may be asked. */
export function showNodes(output: string) {
  const ends = new Map<string, PromiseWithResolvers<string>>();
  const says = new Map<string, SayProgress>();
  let shown: Promise<void> | undefined;
  const begin = async (): Promise<void> => {
    const tasks = [...ends].map(([title, { promise }]) => ({
      title,
      work: async (say: SayProgress) => {
        says.set(title, say);
        return promise;
      },
    }));
    // A failure is told at the end, with its hint.
    await shownTasks(output)(tasks).catch(() => undefined);
  };
  return {
    onEvent: (event: RunEvent): void => {
      if (event.type === "run.started") for (const node of event.nodes) ends.set(node, Promise.withResolvers());
      if (event.type === "step.started") shown ??= begin();
      if (event.type !== "node.finished") return;
      const end = ends.get(event.node);
      end?.promise.catch(() => undefined);
      if (event.outcome === "done") end?.resolve("copied");
      else end?.reject(new Error(event.outcome));
    },
    sayOf:
      (node: string): SayProgress =>
      (progress) =>
        says.get(node)?.(progress),
    /** Ends all tasks. */
    end: async (): Promise<void> => {
      for (const { resolve } of ends.values()) resolve("");
      await shown;
    },
  };
}
