import { run as runProgram, type ProcessEnd } from "#base/process.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError, exitCodes } from "#errors/problem.ts";

/** How a command on this machine ended. */
export type Finished = Pick<ProcessEnd, "code" | "stdout" | "stderr">;

export interface RunOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Ends the command with SIGKILL after so many milliseconds. */
  readonly timeout?: number;
}

/** Where the lab looks for commands: also in sbin. */
export const commandPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The environment of the lab's commands: works without HOME, finds sbin, speaks English, keeps proxies. */
export function commandEnvironment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return { ...process.env, PATH: commandPath, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive", ...extra };
}

/** The environment of processes that outlive this command: without the caller's, which may hold secrets. */
export function lastingEnvironment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return { PATH: commandPath, LC_ALL: "C", ...extra };
}

/** Runs a command on this machine and waits for its end. */
export function run(
  command: string,
  args: readonly string[],
  { input, env, timeout }: RunOptions = {},
): Promise<Finished> {
  return runProgram([command, ...args], {
    env: commandEnvironment(env),
    ...omitUndefined({ input, limitMs: timeout }),
  });
}

/** Runs a command that has to succeed and returns its stdout; throws `LAB_COMMAND_FAILED` with the last of its stderr. */
export async function must(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, options);
  if (code === 0) return stdout;
  throw new KcoreError(
    {
      code: "LAB_COMMAND_FAILED",
      message: `“${[command, ...args].join(" ").slice(0, 200)}” ended with exit code ${code}`,
      detail: lastLines(stderr.trim() === "" ? stdout : stderr),
    },
    { exitCode: exitCodes.failed },
  );
}

/** The end of a long output, as much as fits on a screen. */
export function lastLines(text: string, count = 15): string {
  return text.trimEnd().split("\n").slice(-count).join("\n");
}

/** Wraps a command so that this process's death kills it, with its mounts and children. */
export function bound(command: string, args: readonly string[]): [string, string[]] {
  const own = ["-m", "-p", "-f", "--kill-child", "--mount-proc", "--propagation", "private"];
  return ["setpriv", ["--pdeathsig", "KILL", "unshare", ...own, command, ...args]];
}
