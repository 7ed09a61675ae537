import type { Writable } from "node:stream";
import { createLog, type Log } from "./log.ts";
import { createSupervisor, type Supervisor } from "./supervisor.ts";

/** The surroundings of a controller or an agent. */
export interface Daemon {
  readonly configFile: string;
  /** Reads the configuration's YAML. */
  readonly parse: (text: string) => unknown;
  /** Stops it in good order. */
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly clock: () => number;
  readonly random: () => number;
  readonly version: string;
  /** Tells systemd that the service does its work, and that its event loop lives. */
  readonly supervisor?: Supervisor;
}

/**
 * Writes the log lines of one turn of the event loop together: a hundred writes that share a flush of the disk leave a hundred lines of
 * audit. A line about an error is written at once, together with those before it: the process may end next.
 */
function writeTogether(stream: Writable): (line: string, isUrgent: boolean) => void {
  let isHeld = false;
  const release = (): void => {
    if (!isHeld) return;
    isHeld = false;
    stream.uncork();
  };
  return (line, isUrgent) => {
    if (!isHeld && !isUrgent) {
      isHeld = true;
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
  ...given
}: Pick<Daemon, "configFile" | "parse" | "version"> & { readonly unit: string }): Daemon {
  const stop = new AbortController();
  // systemd sends TERM to stop a service; INT comes from a terminal.
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());
  const log = createLog({ write: writeTogether(process.stderr), clock: Date.now, base: { unit } });
  const supervisor = createSupervisor({
    environment: process.env,
    pid: process.pid,
    onProblem: (reason) => log.warn("systemd cannot be told of this service", { reason }),
  });
  return { ...given, signal: stop.signal, log, clock: Date.now, random: Math.random, supervisor };
}
