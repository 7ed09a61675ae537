import { z } from "zod";
import { Secret } from "../secret.ts";
import { sh, shLines, type Sh } from "../sh.ts";

/** A text that other users of the node can see while a command runs; a secret is refused with a hint. */
export const Visible = z.string({
  error: ({ input }) =>
    input instanceof Secret
      ? "must not be secret: command lines and environments can be read by others; give it by stdin"
      : undefined,
});

export const Env = z
  .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable's name"), Visible)
  .default({})
  .describe("Environment variables; never secret ones.");

export const SuccessCodes = z
  .array(z.number().int().min(0).max(255))
  .min(1)
  .default([0])
  .describe("Exit codes that mean success.");

interface Process {
  readonly cwd?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: string | Secret | undefined;
  readonly successCodes: readonly number[];
}

/** Runs a command in its folder, with its variables and its input, and tells its exit code; ends 0 when that means success. */
export function withProcess(command: Sh, { cwd, env, stdin, successCodes }: Process): Sh {
  return sh`${cwd === undefined ? sh`` : sh`cd -- ${cwd} || exit 1`}
${shLines(Object.entries(env).map(([name, value]) => sh`export ${name}=${value}`))}
${stdin === undefined ? command : sh`printf %s ${stdin} | ${command}`}
status=$?
printf 'C %s\n' "$status" >&3
case ${` ${successCodes.join(" ")} `} in *" $status "*) exit 0 ;; esac
${successCodes.includes(0) ? sh`` : sh`[ "$status" != 0 ] || echo "ended with exit code 0, which is not among successCodes" >&2`}
exit 1`;
}
