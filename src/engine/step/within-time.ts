import { createContext, Script } from "node:vm";

/** Milliseconds of elapsed time, not of CPU time: generous for a busy machine. */
const defaultLimit = 1000;

const context = createContext({});
const script = new Script("work()");

/**
 * The value of `work`; undefined if `work` runs longer than `timeout` (milliseconds) or recurses too deep, as an
 * operator's regular expression or JSON Schema may. Other errors of `work` are thrown.
 */
export function withinTime<T>(work: () => T, timeout = defaultLimit): { readonly value: T } | undefined {
  context["work"] = work;
  try {
    return { value: script.runInContext(context, { timeout }) as T };
  } catch (error) {
    const isLate = (error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
    if (isLate || error instanceof RangeError) return undefined;
    throw error;
  }
}
