import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { promisify } from "node:util";
import { kcoreProgram, type Bastion } from "./deploy.ts";

const run = promisify(execFile);

/** A terminal (a tmux server of its own) in which a command of kcore runs; closing it hangs up (SIGHUP). */
export interface Terminal {
  /** What stands on its screen. */
  screen(): Promise<string>;
  close(): Promise<void>;
}

let opened = 0;

/** Opens a terminal in the bastion's project that runs `kcore WORDS`. */
export async function openTerminal({ project, home }: Bastion, words: string): Promise<Terminal> {
  const socket = `kcore-test-${process.pid}-${(opened += 1)}`;
  const tmux = (...args: readonly string[]) => run("tmux", ["-L", socket, "-f", "/dev/null", ...args]);
  await tmux(
    "new-session",
    "-d",
    "-x",
    "160",
    "-y",
    "50",
    "-c",
    project,
    `KCORE_HOME='${home}' exec '${kcoreProgram}' ${words}`,
  );
  return {
    screen: async () => (await tmux("capture-pane", "-p")).stdout,
    // It ends by itself with its command.
    close: async () => {
      const { stdout: file } = await tmux("display-message", "-p", "#{socket_path}").catch(() => ({ stdout: "" }));
      await tmux("kill-server").catch(() => undefined);
      if (file.trim() !== "") await rm(file.trim(), { force: true });
    },
  };
}
