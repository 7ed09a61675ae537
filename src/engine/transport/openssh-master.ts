import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { orAborted } from "./deadline.ts";
import { createTail } from "#base/tail.ts";
import { HostUnreachable } from "./host-problems.ts";

/** Runs ssh as a ControlMaster as long as stdin is open, so that ssh ends with kcore, even if kcore is killed. Arguments: the folder, the ssh command. */
const holder = `exec 3<&0
folder=$1
shift
"$@" 3<&- &
ssh=$!
{ read -r end <&3; kill "$ssh"; } >/dev/null 2>&1 &
watch=$!
wait "$ssh"
status=$?
kill "$watch" 2>/dev/null
rm -rf "$folder"
exit "$status"`;

/** The variables of kcore's environment that ssh may need, and no others: agents, Kerberos, and where a security key asks for its PIN. */
const needed =
  /^(PATH|HOME|USER|LOGNAME|SSH_AUTH_SOCK|SSH_ASKPASS|SSH_SK_.*|KRB5.*|DISPLAY|WAYLAND_DISPLAY|XDG_RUNTIME_DIR)$/;

export function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => needed.test(name)));
}

/** ssh ended before it had logged in; its messages have the reason. */
export class MasterEnded extends Error {
  readonly stderr: string;

  constructor(stderr: string) {
    super("ssh ended");
    this.stderr = stderr;
  }
}

/** The process that holds a connection. */
export interface Master {
  /** The last 64 KiB of ssh's stderr. */
  readonly stderr: () => string;
  readonly ended: Promise<void>;
  readonly end: () => void;
}

/** Starts the ControlMaster, and resolves once ssh has logged in. @throws MasterEnded; the signal's reason */
export async function startMaster(folder: string, address: string, signal: AbortSignal): Promise<Master> {
  const socket = join(folder, "c");
  const words = ["ssh", "-F", join(folder, "config"), "-v", "-N", "-T", "-M", "-S", socket, "--", address];
  const child = spawn("/bin/sh", ["-c", holder, "sh", folder, ...words], {
    stdio: ["pipe", "ignore", "pipe"],
    env: environment(),
    // Ctrl-C concerns the views only.
    detached: true,
  });
  requireStarted(child, address);
  const tail = createTail(64 * 1024);
  child.stdin.on("error", () => undefined);
  const ended = new Promise<void>((resolve) => {
    child.once("error", () => resolve());
    child.once("close", () => resolve());
  });
  const end = () => child.stdin.destroy();
  const ready = new Promise<void>((resolve, reject) => {
    child.stderr.on("data", (chunk: Buffer) => {
      tail.push(chunk);
      // ssh makes the socket once it has logged in to the target; a message about a login can concern a jump host.
      if (existsSync(socket)) resolve();
    });
    void ended.then(() => reject(new MasterEnded(tail.text())));
  });
  try {
    await orAborted(ready, signal);
  } catch (error) {
    end();
    await ended;
    throw error;
  }
  return { stderr: () => tail.text(), ended, end };
}

/** The process. @throws HostUnreachable if it was not started: such a process has no streams */
export function requireStarted<Process extends ChildProcess>(child: Process, name: string): Process {
  if (child.pid !== undefined) return child;
  child.on("error", () => undefined);
  throw new HostUnreachable("files", {
    message: `this machine starts no further process to reach ${name}`,
    hint: "raise “ulimit -n” and “ulimit -u”, or lower the concurrency; is /bin/sh there?",
  });
}
