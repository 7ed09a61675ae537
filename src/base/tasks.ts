/** Long work with a title. `say` reports progress; a view shows a returned string behind the title at the end. */
export interface Task {
  readonly title: string;
  readonly work: (say: (progress: string) => void) => Promise<unknown>;
}

/** Runs tasks concurrently until all have ended. @throws the error of the first failed task in the list */
export type RunTasks = (tasks: readonly Task[]) => Promise<void>;

/** Runs tasks without a view. */
export const runTasks: RunTasks = async (tasks) => {
  const ends = await Promise.allSettled(tasks.map(({ work }) => work(() => undefined)));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
};
