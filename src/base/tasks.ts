/** Work that takes long. `say` tells its progress; a returned string stands behind the title at the end. */
export interface Task {
  readonly title: string;
  readonly work: (say: (progress: string) => void) => Promise<unknown>;
}

/** Runs tasks side by side until all have ended. @throws the first error of a task */
export type RunTasks = (tasks: readonly Task[]) => Promise<void>;

/** Runs tasks without a view. */
export const runTasks: RunTasks = async (tasks) => {
  const ends = await Promise.allSettled(tasks.map(({ work }) => work(() => undefined)));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
};
