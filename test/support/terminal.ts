import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { kcoreProgram, type Bastion } from "./deploy.ts";
import { hangLimit } from "./limit.ts";

const run = promisify(execFile);

/** A terminal (a tmux server of its own) with a running command; closing it hangs up (SIGHUP). */
export interface Terminal {
  /** The text of the screen. */
  screen(): Promise<string>;
  /** The text of the screen, with the sequences for colours. */
  painted(): Promise<string>;
  close(): Promise<void>;
}

/** A terminal with a shell in it. */
export interface ShellTerminal extends Terminal {
  /** Types a text, and Enter after it. */
  enter(text: string): Promise<void>;
  /** Presses keys by tmux's names: `q`, `C-c`, `Down`, `Enter`. */
  press(...keys: readonly string[]): Promise<void>;
  resize(columns: number, rows: number): Promise<void>;
  /** Passes all later output of the terminal to a command's stdin. */
  record(command: string): Promise<void>;
  /** Waits until the screen matches the pattern, and resolves with the screen. */
  shows(pattern: RegExp): Promise<string>;
  /** Clears the screen and the scrollback. */
  wipe(): Promise<void>;
  /** All output since the last `wipe`, with long lines unbroken and without blank lines at the end. */
  text(): Promise<string>;
  /** The pid of the terminal's shell. */
  shell(): Promise<number>;
}

interface TerminalOptions {
  readonly cwd: string;
  readonly columns?: number;
  readonly rows?: number;
}

/** Opens a terminal in the bastion's project that runs `kcore WORDS`. */
export async function openTerminal({ project, home }: Bastion, words: string): Promise<Terminal> {
  const command = `KCORE_HOME='${home}' exec '${kcoreProgram}' ${words}`;
  return (await startTmux({ cwd: project, columns: 160, rows: 50 }, command)).terminal;
}

/** Opens a terminal with bash, these variables and the prompt `$ `. */
export async function openShell(
  options: TerminalOptions,
  variables: Readonly<Record<string, string>>,
): Promise<ShellTerminal> {
  const set = Object.entries({ PS1: "$ ", LC_ALL: "C.UTF-8", CI: "", ...variables }).map(
    ([name, value]) => `${name}='${value}'`,
  );
  const { terminal, tmux } = await startTmux(options, `env ${set.join(" ")} bash --norc --noprofile`);
  const shows = async (pattern: RegExp) => {
    for (const end = performance.now() + hangLimit; ;) {
      const screen = await terminal.screen();
      if (pattern.test(screen)) return screen;
      if (performance.now() > end) throw new Error(`no ${String(pattern)} on the screen:\n${screen}`);
      await sleep(50);
    }
  };
  await shows(/^\$/m);
  return {
    ...terminal,
    shows,
    enter: async (text) => {
      await tmux("send-keys", "-l", text);
      await tmux("send-keys", "Enter");
    },
    press: async (...keys) => void (await tmux("send-keys", ...keys)),
    resize: async (columns, rows) => void (await tmux("resize-window", "-x", String(columns), "-y", String(rows))),
    record: async (command) => void (await tmux("pipe-pane", command)),
    wipe: async () => {
      await tmux("send-keys", "C-l");
      await shows(/^\$ ?\n*$/);
      await tmux("clear-history");
    },
    text: async () => (await tmux("capture-pane", "-p", "-J", "-S", "-")).stdout.replaceAll(/ +$/gm, "").trimEnd(),
    shell: async () => Number((await tmux("display-message", "-p", "#{pane_pid}")).stdout),
  };
}

async function startTmux({ cwd, columns = 80, rows = 24 }: TerminalOptions, command: string) {
  const folder = await mkdtemp(join(tmpdir(), "kcore-tmux-"));
  const words = ["-S", join(folder, "socket"), "-f", "/dev/null"];
  // The server dies with this process, in any case, and its terminal with it.
  const server = spawn("setpriv", ["--pdeathsig", "KILL", "tmux", ...words, "-D"], { stdio: "ignore" });
  const ended = new Promise((resolve) => server.once("close", resolve));
  while (!existsSync(join(folder, "socket")) && server.exitCode === null) await sleep(5);
  const tmux = (...args: readonly string[]) => run("tmux", [...words, ...args]);
  await tmux("new-session", "-d", "-x", String(columns), "-y", String(rows), "-c", cwd, command);
  await tmux("set-option", "-s", "exit-empty", "on");
  const terminal: Terminal = {
    screen: async () => (await tmux("capture-pane", "-p")).stdout,
    painted: async () => (await tmux("capture-pane", "-p", "-e")).stdout,
    close: async () => {
      // The server may have ended with its command.
      await tmux("kill-server").catch(() => undefined);
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
  return { terminal, tmux };
}
