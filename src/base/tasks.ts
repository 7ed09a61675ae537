/** The progress of a task: words, or the bytes done and, if known, the total. */
export type TaskProgress = string | { readonly bytes: number; readonly total?: number };

export type SayProgress = (progress: TaskProgress) => void;

/** Long work with a title, or its steps in order. At the end a view shows the string that `work` returned, if any, behind the title. */
export type Task = { readonly title: string } & (
  { readonly work: (say: SayProgress) => Promise<unknown> } | { readonly steps: readonly Task[] }
);

/** Runs tasks concurrently until all have ended. @throws the error of the first failed task in the list */
export type RunTasks = (tasks: readonly Task[]) => Promise<void>;

/** Runs tasks; passes the title and the result of each as a line, for a view without updates in place. */
export function tasksAsLines(tell: (line: string) => void): RunTasks {
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

/** Yields the chunks unchanged, and reports the number of bytes so far. */
export async function* reportingBytes(
  chunks: AsyncIterable<Uint8Array>,
  say: SayProgress,
  total?: number,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of chunks) {
    say({ bytes: (bytes += chunk.length), ...(total !== undefined && { total }) });
    yield chunk;
  }
}

/** Runs tasks without a view. */
export const runTasks: RunTasks = tasksAsLines(() => undefined);

/** Runs one task and returns the result of its work; `end` makes the words that a view shows at the end. */
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
