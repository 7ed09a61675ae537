import type { Log } from "#api/log.ts";
import { limitRate } from "./rate.ts";

/** The rate of warnings about one address: a busy caller must not hide other warnings. */
const addressRate = { perSecond: 1, burst: 100 };
/** The rate of warnings about all addresses: they must not fill the log. */
const totalRate = { perSecond: 20, burst: 1000 };

/**
 * A log that limits the rate of warnings about an address (`from`), for each message apart (S-17). The next written warning
 * has the number of dropped ones.
 */
export function limitWarnings(log: Log, monotonic: () => number): Log {
  const isInRate = limitRate(addressRate, monotonic);
  const isInAll = limitRate(totalRate, monotonic);
  const unwritten = new Map<string, number>();
  return {
    ...log,
    warn(message, fields = {}) {
      const { from } = fields;
      if (typeof from === "string" && !(isInRate(`${message} ${from}`) && isInAll(message)))
        return void unwritten.set(message, (unwritten.get(message) ?? 0) + 1);
      const count = unwritten.get(message) ?? 0;
      unwritten.delete(message);
      log.warn(message, count === 0 ? fields : { ...fields, unwritten: count });
    },
  };
}
