import { createContext, Script } from "node:vm";

/** Milliseconds of the clock: a busy machine takes some of them. */
const usual = 1000;

const context = createContext({});
const script = new Script("work()");

/** What `work` gives; undefined where it goes on for too long, or too deep: what somebody wrote, such as a regular expression, may have it go on for ever. */
export function withinTime<T>(work: () => T, timeout = usual): { readonly value: T } | undefined {
  context["work"] = work;
  try {
    return { value: script.runInContext(context, { timeout }) as T };
  } catch (error) {
    const isLate = (error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
    if (isLate || error instanceof RangeError) return undefined;
    throw error;
  }
}
