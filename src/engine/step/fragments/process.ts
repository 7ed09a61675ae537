import { z } from "zod";
import { Secret } from "../secret.ts";
import type { Thing } from "../reach.ts";
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

export const Revert = Visible.min(1)
  .optional()
  .describe("A command line for /bin/sh that takes it back, for a step with a risk.");

/** What a step on trial keeps of a command: how to take it back. */
export function keepRevert(revert: string | undefined): { readonly keep?: Sh } {
  return revert === undefined ? {} : { keep: sh`on_revert ${revert}` };
}

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

interface Needs {
  readonly cwd?: string | undefined;
  /** A name to be found on PATH, or a path. */
  readonly program?: string | undefined;
}

/** What has to be there for a command to begin at all. */
export function needsOf({ cwd, program }: Needs): Thing[] {
  return [
    ...(cwd === undefined ? [] : [{ is: "place", path: cwd } as const]),
    ...(program === undefined ? [] : [{ is: "program", name: program } as const]),
    ...(program?.startsWith("/") ? [{ is: "place", path: program } as const] : []),
  ];
}

/** For a dry run: the command could not begin. With a PATH of its own, or from a folder of its own, only the step itself would know. */
export function foreseeNeeds({ cwd, program }: Needs, { env }: Pick<Process, "env">): Sh {
  const isKnown = program !== undefined && !("PATH" in env) && (program.startsWith("/") || !program.includes("/"));
  return sh`${cwd === undefined ? sh`` : sh`[ -d ${cwd} ] || { echo ${`${cwd} is not there, or is no folder`} >&2; exit 1; }`}
${isKnown ? sh`have ${program} || { echo ${`${program}: no such program`} >&2; exit 1; }` : sh``}`;
}
