/** Progress of a task: words, or the bytes done and, if it is known, their number in all. */
export type Progress = string | { readonly bytes: number; readonly total?: number };

export type SayProgress = (progress: Progress) => void;

/** Long work with a title, or its steps in order. A view shows the string that `work` returns behind the title at the end. */
export type Task = { readonly title: string } & (
  { readonly work: (say: SayProgress) => Promise<unknown> } | { readonly steps: readonly Task[] }
);

/** Runs tasks concurrently until all have ended. @throws the error of the first failed task in the list */
export type RunTasks = (tasks: readonly Task[]) => Promise<void>;

/** Runs tasks, and tells the title and the result of each piece of work, for a view that only takes lines. */
export function toldTasks(tell: (line: string) => void): RunTasks {
  const runOne = async (task: Task): Promise<void> => {
    if ("steps" in task) {
      for (const step of task.steps) await runOne(step);
      return;
    }
    tell(task.title);
    const result = await task.work(() => undefined);
    if (typeof result === "string") tell(result);
  };
  return async (tasks) => {
    const ends = await Promise.allSettled(tasks.map(runOne));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  };
}

/** Runs tasks without a view. */
export const runTasks: RunTasks = toldTasks(() => undefined);

/** Runs one task and returns its result; `end` makes the words that a view shows at the end. */
export async function runTask<Result>(
  tasks: RunTasks,
  title: string,
  work: (say: SayProgress) => Promise<Result>,
  end?: (result: Result) => string,
): Promise<Result> {
  const results: Result[] = [];
  const keep = async (say: SayProgress): Promise<string | undefined> => {
    const result = await work(say);
    results.push(result);
    return end?.(result);
  };
  await tasks([{ title, work: keep }]);
  return results[0] as Result;
}
