import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { once } from "node:events";

/**
 * Waits beside the view and restores the terminal if the view is killed: the usual screen, the cursor, the modes. The
 * word “over” on stdin means that the view has restored the terminal itself. In a session of its own, the guard gets no
 * signals of the view's process group. The guard leaves modes alone that a shell has restored (`isig` is set), as the
 * shell may be editing a line.
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

/**
 * Starts the guard, which prints `message` if the view is killed; resolves when the guard knows the terminal's modes.
 * Without stty or sh there is none.
 */
export async function guardTerminal(message: string): Promise<TerminalGuard> {
  const guard = spawn("/bin/sh", ["-c", script, "sh", message], {
    detached: true,
    // Descriptor 3 is the terminal: no other one needs to be.
    stdio: ["pipe", "pipe", "ignore", process.stdout.fd],
  }) as ChildProcessByStdio<Writable, Readable, null>;
  guard.stdin.on("error", () => undefined);
  const closed = once(guard, "close").catch(() => undefined);
  await Promise.race([once(guard.stdout, "data").catch(() => undefined), closed]);
  guard.unref();
  return {
    release: async () => {
      guard.ref();
      guard.stdin.end("over\n");
      await closed;
    },
  };
}
