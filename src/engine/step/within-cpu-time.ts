import { createContext, Script } from "node:vm";

/** Milliseconds. */
const defaultLimit = 1000;

const context = createContext({});
const script = new Script("work()");

/**
 * The value of `work`; undefined if `work` takes more CPU time than `timeout` (milliseconds) or recurses too deep, as an
 * operator's regular expression or JSON Schema may. On a busy machine `work` may be begun again. Other errors of `work` are
 * thrown.
 */
export function withinCpuTime<T>(work: () => T, timeout = defaultLimit): { readonly value: T } | undefined {
  context["work"] = work;
  for (let elapsed = timeout; ; elapsed *= 2) {
    const before = process.cpuUsage();
    try {
      return { value: script.runInContext(context, { timeout: elapsed }) as T };
    } catch (error) {
      const isLate = (error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
      if (!isLate && !(error instanceof RangeError)) throw error;
      const { user, system } = process.cpuUsage(before);
      if (!isLate || user + system >= 900 * timeout) return undefined;
    }
  }
}
