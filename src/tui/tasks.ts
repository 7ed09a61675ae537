import { Listr, ListrLogger, ListrLogLevels, PRESET_TIMER, ProcessOutput } from "listr2";
import type { ListrDefaultRenderer, ListrSimpleRenderer, ListrTask } from "listr2";
import type { TaskProgress, RunTasks, SayProgress, Task } from "#base/tasks.ts";
import { formatBytes, formatDuration, formatSending } from "#base/units.ts";
import { cleanLine } from "#engine/events/clean.ts";
import { exitCodes } from "#errors/problem.ts";

export interface TaskOptions {
  readonly out: NodeJS.WriteStream;
  /** Whether tasks are redrawn in their place; else each change is a line. */
  readonly isScreen: boolean;
  /** Nothing is shown, as for `-o json`. */
  readonly isSilent?: boolean;
}

/** Milliseconds between two lines of a long task without a screen. */
const heartbeat = 10_000;

type ListedTask = ListrTask<object, ListrDefaultRenderer, ListrSimpleRenderer>;

/** Shows work of the bastion by listr2: tasks with progress and time on a screen, lines elsewhere. */
export function bastionTasks({ out, isScreen, isSilent = false }: TaskOptions): RunTasks {
  const asItIs = () => (text?: string) => text ?? "";
  const plain = Object.fromEntries(Object.values(ListrLogLevels).map((level) => [level, asItIs()]));
  return async (tasks) => {
    if (tasks.length === 0) return;
    /** The error of each failed task, by the task's index in the list. */
    const errors = new Map<number, unknown>();
    const output = new ProcessOutput(out, out);
    const logger = new ListrLogger({ useIcons: true, toStderr: [], processOutput: output });
    const work = async (
      index: number,
      title: string,
      begin: (say: SayProgress) => Promise<unknown>,
      shown: { title?: string; output?: string },
    ): Promise<void> => {
      const start = performance.now();
      let progressText = "";
      const showTime = () => (shown.output = `${title} … ${progressText}${formatDuration(performance.now() - start)}`);
      const say = (progress: TaskProgress): void => {
        const text = formatProgress(progress);
        progressText = `${text}, `;
        if (isScreen) shown.output = text;
      };
      const beat = isScreen ? undefined : setInterval(showTime, heartbeat);
      try {
        const result = await begin(say);
        if (typeof result === "string") shown.title = cleanLine(`${title}: ${result}`);
      } catch (error) {
        errors.set(index, error);
        throw error;
      } finally {
        clearInterval(beat);
      }
    };
    const listed = (task: Task, index: number): ListedTask => ({
      title: cleanLine(task.title),
      task: (_, shown) =>
        "steps" in task
          ? shown.newListr(
              task.steps.map((step) => listed(step, index)),
              { concurrent: false, exitOnError: true },
            )
          : work(index, task.title, task.work, shown),
    });
    const list = new Listr<object, "default", "simple">(tasks.map(listed), {
      concurrent: true,
      exitOnError: false,
      registerSignalListeners: false,
      silentRendererCondition: isSilent,
      fallbackRendererCondition: !isScreen,
      rendererOptions: { logger, timer: PRESET_TIMER, showErrorMessage: false },
      fallbackRendererOptions: { logger, timer: { ...PRESET_TIMER, format: asItIs }, color: plain },
    });
    const leave = (): void => {
      if (isScreen && !isSilent) output.release();
      process.exit(exitCodes.interrupted);
    };
    // A command with a handler of its own ends its tasks itself.
    const signals = (["SIGINT", "SIGTERM", "SIGHUP"] as const).filter((signal) => process.listenerCount(signal) === 0);
    for (const signal of signals) process.once(signal, leave);
    try {
      await list.run();
    } finally {
      for (const signal of signals) process.off(signal, leave);
    }
    const [first] = [...errors.keys()].toSorted((a, b) => a - b);
    if (first !== undefined) throw errors.get(first);
  };
}

function formatProgress(progress: TaskProgress): string {
  if (typeof progress === "string") return cleanLine(progress);
  const { bytes, total } = progress;
  return total === undefined ? formatBytes(bytes) : formatSending({ sent: bytes, total });
}
