import { createLog, type Log } from "./log.ts";
import { createSupervisor, type Supervisor } from "./supervisor.ts";

/** What a controller and an agent are started with. */
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

/** Makes this process a daemon: it logs to stderr for its unit's journal, stops when it is told to, and speaks with systemd. */
export function becomeDaemon({
  unit,
  ...given
}: Pick<Daemon, "configFile" | "parse" | "version"> & { readonly unit: string }): Daemon {
  const stop = new AbortController();
  // systemd sends TERM to stop a service; INT comes from a terminal.
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());
  const log = createLog({ write: (line) => process.stderr.write(line), clock: Date.now, base: { unit } });
  const supervisor = createSupervisor({
    environment: process.env,
    pid: process.pid,
    onProblem: (reason) => log.warn("systemd cannot be told of this service", { reason }),
  });
  return { ...given, signal: stop.signal, log, clock: Date.now, random: Math.random, supervisor };
}
