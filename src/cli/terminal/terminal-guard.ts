import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { once } from "node:events";

/**
 * Waits beside the view and restores the terminal if the view is killed: the usual screen, the cursor, the modes. The
 * word “over” on stdin means that the view has restored the terminal itself. A session of its own keeps the guard from
 * signals to the view's process group. If a shell has restored the modes meanwhile (`isig` is set), they are left
 * alone: the shell may be editing a line already.
 */
const script = `
saved=$(stty -g <&3) && echo ready || exit 0
read -r word
[ "$word" = over ] && exit
printf '\\033[?2026l\\033[?1049l\\033[?25h\\033[?2004l\\033[0m\\r%s\\n' "$1" >&3
sleep 0.1
case $(stty -a <&3) in *-isig*) stty "$saved" <&3 ;; esac`;

export interface TerminalGuard {
  readonly release: () => Promise<void>;
}

/** Starts the guard; resolves when it knows the terminal's modes. Without stty or sh there is no guard, and no harm. */
export async function guardTerminal(said: string): Promise<TerminalGuard> {
  const guard = spawn("/bin/sh", ["-c", script, "sh", said], {
    detached: true,
    // Descriptor 3 is the terminal: no other one needs to be.
    stdio: ["pipe", "pipe", "ignore", process.stdout.fd],
  }) as ChildProcessByStdio<Writable, Readable, null>;
  guard.stdin.on("error", () => undefined);
  const gone = once(guard, "close").catch(() => undefined);
  await Promise.race([once(guard.stdout, "data").catch(() => undefined), gone]);
  guard.unref();
  return {
    release: async () => {
      guard.ref();
      guard.stdin.end("over\n");
      await gone;
    },
  };
}
