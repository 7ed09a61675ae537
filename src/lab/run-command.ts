import { run as runProgram, type ProcessEnd } from "#base/process.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError, exitCodes } from "#errors/problem.ts";

/** The end of a command on this machine. */
export type CommandEnd = Pick<ProcessEnd, "code" | "stdout" | "stderr">;

export interface CommandOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Ends the command with SIGKILL after so many milliseconds. */
  readonly timeout?: number;
}

/** The PATH of the lab's commands, with sbin. */
export const labSearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The environment of the lab's commands: the caller's, such as proxies, with sbin and English messages. */
export function commandEnvironment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return { ...process.env, PATH: labSearchPath, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive", ...extra };
}

/** The environment of processes that outlive this command; nothing of the caller's, which may hold secrets. */
export function lastingEnvironment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return { PATH: labSearchPath, LC_ALL: "C", ...extra };
}

/** Runs a command on this machine and waits for its end. An exit code other than 0 is no error. */
export function runCommand(
  command: string,
  args: readonly string[],
  { input, env, timeout }: CommandOptions = {},
): Promise<CommandEnd> {
  return runProgram([command, ...args], {
    env: commandEnvironment(env),
    ...omitUndefined({ input, limitMs: timeout }),
  });
}

/** Runs a command that has to succeed and returns its stdout; throws `LAB_COMMAND_FAILED` with the last lines of its stderr, or of its stdout if stderr is blank. */
export async function mustRun(command: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await runCommand(command, args, options);
  if (code === 0) return stdout;
  throw new KcoreError(
    {
      code: "LAB_COMMAND_FAILED",
      message: `“${[command, ...args].join(" ").slice(0, 200)}” ended with exit code ${code}`,
      detail: endLines(stderr.trim() === "" ? stdout : stderr),
    },
    { exitCode: exitCodes.failed },
  );
}

/** The last lines of an output, by default 15. */
export function endLines(text: string, count = 15): string {
  return text.trimEnd().split("\n").slice(-count).join("\n");
}

/** Command and arguments that run a command in its own mount and pid namespace, which ends with this process. */
export function boundCommand(command: string, args: readonly string[]): [string, string[]] {
  const own = ["-m", "-p", "-f", "--kill-child", "--mount-proc", "--propagation", "private"];
  return ["setpriv", ["--pdeathsig", "KILL", "unshare", ...own, command, ...args]];
}
