import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { listRunIds, readHeader, runFolder } from "#engine/run/run-folder.ts";
import { isAlive } from "#engine/run/process-mark.ts";
import { kcoreEnvironment } from "./program.ts";
import type { ShellTerminal } from "./terminal.ts";

const launcher = join(import.meta.dirname, "../../bin/kcore");

/** The end of a command; `code` is null if a signal ended it. */
export interface CommandEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A project with this machine (`here`) and an unreachable node (`gone`), and the real command line in it. */
export class TestProject {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), "kcore-cli-")));

  constructor(files: Readonly<Record<string, string>> = {}) {
    this.write({
      "project/roster/nodes.yaml": `nodes:
  here: { address: 127.0.0.1, transport: local, stateDir: ${this.path}/state, roles: [worker] }
  gone: { address: 127.0.0.1, port: 1, roles: [worker], identityFile: ${this.path}/key }
`,
      "project/orchestrate/README.md": "",
      ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`project/${name}`, text])),
    });
    mkdirSync(join(this.path, "state"), { mode: 0o700 });
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(this.path, "key")]);
  }

  get project(): string {
    return join(this.path, "project");
  }

  write(files: Readonly<Record<string, string>>): void {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.path, name)), { recursive: true });
      writeFileSync(join(this.path, name), text);
    }
  }

  /** Starts `kcore WORDS…` in the project, without a terminal: also when the tests have one. `output`: a descriptor for stdout and stderr. */
  start(
    words: readonly string[],
    env: Readonly<Record<string, string>> = {},
    output: "pipe" | number = "pipe",
  ): { child: ChildProcess; ended: Promise<CommandEnd> } {
    const child = spawn(launcher, [...words], {
      cwd: this.project,
      detached: true,
      stdio: ["ignore", output, output],
      env: {
        ...process.env,
        ...kcoreEnvironment,
        KCORE_HOME: join(this.path, "home"),
        ...env,
      },
    });
    let [stdout, stderr] = ["", ""];
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    const ended = once(child, "close").then(([code]) => ({ code: code as number | null, stdout, stderr }));
    return { child, ended };
  }

  kcore(...words: readonly string[]): Promise<CommandEnd> {
    return this.start(words).ended;
  }

  /** Runs kcore in this process, for tests that need no signal, pipe or descriptor. */
  async call(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CommandEnd> {
    const { callKcore } = await import("./call-kcore.ts");
    return callKcore(words, {
      cwd: this.project,
      env: { ...kcoreEnvironment, KCORE_HOME: join(this.path, "home"), ...env },
    });
  }

  /** Runs work in the operator's shell, at a terminal in the project. */
  async atTerminal(
    work: (shell: ShellTerminal) => Promise<void>,
    env: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const { openShell } = await import("./terminal.ts");
    const variables = { ...kcoreEnvironment, KCORE_HOME: join(this.path, "home"), ...env };
    const shell = await openShell({ cwd: this.project, columns: 160, rows: 60 }, variables);
    try {
      await work(shell);
    } finally {
      await shell.close();
    }
  }

  /** The pid of the newest run's process, once it exists. */
  async driver(): Promise<number> {
    for (;;) {
      const id = (await listRunIds(this.project)).at(-1);
      const mark = id === undefined ? undefined : (await readHeader(runFolder(this.project, id))).process;
      if (mark && isAlive(mark)) return mark.pid;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Waits until no run of the project is alive, and removes everything. */
  async remove(): Promise<void> {
    for (const id of await listRunIds(this.project)) {
      const folder = runFolder(this.project, id);
      while (isAlive((await readHeader(folder)).process)) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    rmSync(this.path, { recursive: true, force: true, maxRetries: 10 });
  }
}
