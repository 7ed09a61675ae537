import type { Writable } from "node:stream";
import { createLog, type Log } from "./log.ts";
import { createSupervisor, type Supervisor } from "./supervisor.ts";

/** The process of a controller or an agent: its configuration file, clock, log and end. */
export interface Daemon {
  readonly configFile: string;
  /** Reads the configuration's YAML. */
  readonly parse: (text: string) => unknown;
  /** Asks the daemon to stop in good order. */
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly clock: () => number;
  readonly random: () => number;
  readonly version: string;
  readonly supervisor?: Supervisor;
}

/**
 * Writes the log lines of one turn of the event loop together: a hundred writes that share a flush of the disk leave a hundred lines of
 * audit. A line about an error is written at once, with all lines before it, since the process may end next.
 */
function writeLinesTogether(stream: Writable): (line: string, isUrgent: boolean) => void {
  let isCorked = false;
  const release = (): void => {
    if (!isCorked) return;
    isCorked = false;
    stream.uncork();
  };
  return (line, isUrgent) => {
    if (!isCorked && !isUrgent) {
      isCorked = true;
      stream.cork();
      process.nextTick(release);
    }
    stream.write(line);
    if (isUrgent) release();
  };
}

/** Makes this process a daemon: it logs to stderr for systemd's journal, stops at SIGTERM and SIGINT, and notifies systemd. */
export function becomeDaemon({
  unit,
  ...options
}: Pick<Daemon, "configFile" | "parse" | "version"> & { readonly unit: string }): Daemon {
  const stop = new AbortController();
  // systemd sends TERM to stop a service; INT comes from a terminal.
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());
  const log = createLog({ write: writeLinesTogether(process.stderr), clock: Date.now, base: { unit } });
  const supervisor = createSupervisor({
    environment: process.env,
    pid: process.pid,
    onProblem: (reason) => log.warn("systemd cannot be told of this service", { reason }),
  });
  return { ...options, signal: stop.signal, log, clock: Date.now, random: Math.random, supervisor };
}
