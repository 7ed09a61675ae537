import type { Log } from "#api/log.ts";
import { limitRate } from "./rate.ts";

/** The rates of warnings about one address and about all: a busy caller must neither fill the log nor hide other warnings. */
const perAddress = { perSecond: 1, burst: 100 };
const ofAll = { perSecond: 20, burst: 1000 };

/**
 * A log that limits the rate of warnings about an address (`from`), for each message apart (S-17). The next written warning
 * has the number of dropped ones.
 */
export function limitWarnings(log: Log, monotonic: () => number): Log {
  const isInRate = limitRate(perAddress, monotonic);
  const isInAll = limitRate(ofAll, monotonic);
  const unwritten = new Map<string, number>();
  return {
    ...log,
    warn(message, fields = {}) {
      const { from } = fields;
      if (typeof from === "string" && !(isInRate(`${message} ${from}`) && isInAll(message)))
        return void unwritten.set(message, (unwritten.get(message) ?? 0) + 1);
      const left = unwritten.get(message) ?? 0;
      unwritten.delete(message);
      log.warn(message, left === 0 ? fields : { ...fields, unwritten: left });
    },
  };
}
