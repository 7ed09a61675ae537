import { execFile } from "node:child_process";

/** Notifies systemd of a service's state, as sd_notify(3) does; without NOTIFY_SOCKET it does nothing. */
export interface Supervisor {
  /** The service does its work from now on. Also starts the watchdog's signs, if the unit has a watchdog. */
  readonly ready: () => void;
  readonly stopping: () => void;
}

/** `systemd-notify` belongs to systemd itself; NixOS keeps it elsewhere. */
const searchPath = "/usr/bin:/bin:/run/current-system/systemd/bin:/run/current-system/sw/bin";
/** Signs per period of the watchdog: two of them may be lost. */
const signsPerPeriod = 3;

/**
 * Node cannot send to a Unix datagram socket, so systemd's own `systemd-notify` does; the unit has `NotifyAccess=all`.
 * kcore's units are `Type=exec`: before systemd 246 a notification may get lost, and the loss would kill a healthy daemon.
 * The watchdog's signs come from a timer, so they prove that the event loop is alive. `onProblem` is called at most once.
 * Started without base/process: zx would cost each daemon 11 MiB of memory.
 */
export function createSupervisor({
  environment,
  pid,
  onProblem,
}: {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  readonly onProblem: (reason: string) => void;
}): Supervisor {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: period, WATCHDOG_PID: watched, PATH: path = "" } = environment;
  let isBroken = false;
  const send = (...words: readonly string[]): void => {
    if (socket === undefined || isBroken) return;
    const env = { NOTIFY_SOCKET: socket, PATH: path === "" ? searchPath : `${path}:${searchPath}` };
    execFile("systemd-notify", words, { env, timeout: 10_000 }, (error) => {
      if (!error || isBroken) return;
      isBroken = true;
      onProblem(error.message.trim());
    });
  };
  const periodMs = watched === undefined || watched === String(pid) ? Number(period ?? 0) / 1000 : 0;
  let watchdog: NodeJS.Timeout | undefined;
  return {
    ready() {
      send("--ready");
      if (periodMs > 0) watchdog ??= setInterval(() => send("WATCHDOG=1"), periodMs / signsPerPeriod).unref();
    },
    stopping() {
      clearInterval(watchdog);
      send("STOPPING=1");
    },
  };
}
