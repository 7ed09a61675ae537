import { poll } from "#base/wait.ts";
import { UpdateFailure } from "./failure.ts";
import type { ProgramEnd, Ports } from "./ports.ts";

/** One unit for all work: two programs that change the system at once would disturb each other. */
const workUnit = "kcore-update-work.service";
const quickMs = 30_000;
/** Milliseconds that systemd itself may need to start and end a unit. */
const spareMs = 15_000;
/** Seconds from SIGTERM to SIGKILL. */
const stopSeconds = 10;

/**
 * Runs a program as a unit of its own, without the confinement of the updater's unit. It may end or restart the updater; the next updater
 * then waits for it. When `msLeft()` milliseconds are over, systemd ends the program with all processes that it started.
 */
export async function runOutside(
  ports: Ports,
  words: readonly string[],
  msLeft: () => number,
  unit = workUnit,
): Promise<ProgramEnd> {
  await waitForOther(ports, msLeft, unit);
  const limitMs = msLeft();
  const start = ports.uptime();
  const ended = await ports.run(
    [
      "systemd-run",
      `--unit=${unit}`,
      "--service-type=exec",
      "--wait",
      "--pipe",
      "--collect",
      "--quiet",
      `--property=RuntimeMaxSec=${Math.ceil(limitMs / 1000)}`,
      `--property=TimeoutStopSec=${stopSeconds}`,
      "--setenv=PATH",
      "--setenv=HOME=/root",
      "--",
      // systemd expands `$` itself (systemd.service(5), Command lines); `$$` is a literal `$`.
      ...words.map((word) => word.replaceAll("$", "$$$$")),
    ],
    limitMs + spareMs,
  );
  if (ended.code === 0 || ports.uptime() - start < limitMs) return ended;
  return { stdout: ended.stdout, stderr: ended.stderr };
}

/** Waits for the program of an earlier updater. @throws UpdateFailure when the time is over */
async function waitForOther(ports: Ports, msLeft: () => number, unit: string): Promise<void> {
  const hasEnded = async (): Promise<boolean> => {
    const { stdout } = await ports.run(["systemctl", "show", "-p", "ActiveState", "--value", "--", unit], quickMs);
    if (["", "inactive", "failed"].includes(stdout.trim())) return true;
    if (msLeft() <= 1) throw new UpdateFailure("activation", `${unit} is still at work: systemctl status ${unit}`);
    return false;
  };
  await poll(hasEnded, { everyMs: 1_000, sleep: ports.sleep });
}

/** Ends a program that an earlier updater left running, with all that it started. */
export async function endOutside(ports: Ports, unit: string): Promise<void> {
  await ports.run(["systemctl", "stop", "--", unit], quickMs);
}
