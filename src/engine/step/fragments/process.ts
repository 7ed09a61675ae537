import { z } from "zod";
import type { Step } from "../define.ts";
import { Secret } from "../secret.ts";
import type { NodeResource } from "../effects.ts";
import { sh, type Sh } from "../sh.ts";
import { shellText, type ShellText } from "../shell-text.ts";

/** The message for a secret in an argument that others can read; undefined for other values. */
export const refuseSecret = ({ input }: { readonly input?: unknown }): string | undefined =>
  input instanceof Secret
    ? "must not be secret: command lines and environments can be read by others; give it by stdin"
    : undefined;

/** A text that other users of the node can see while a command runs; a secret is refused with a hint. */
export const Visible = z.string({ error: refuseSecret });

export const SuccessCodes = z
  .array(z.number().int().min(0).max(255))
  .min(1)
  .default([0])
  .describe("Exit codes that mean success.");

/** A POSIX extended regular expression, as grep(1) of the node reads it. */
const Expression = z.string().regex(/^[^\0\n]+$/, "must be one line of a POSIX extended regular expression");

/** The argument `changed` of modules that run a command. */
export const ChangedArgument = z
  .union(
    [
      z.enum(["always", "never"]),
      z
        .strictObject({
          whenOutput: Expression.describe("A POSIX extended regular expression for a line of standard output."),
        })
        .meta({ examples: [{ whenOutput: "^Applied [1-9]" }] }),
      z
        .strictObject({
          whenCode: z
            .array(z.number().int().min(0).max(255))
            .min(1)
            .describe("Exit codes that mean success with a change; 0 then means success without."),
        })
        .meta({ examples: [{ whenCode: [2] }] }),
    ],
    { error: "must be always, never, { whenOutput: REGEX } or { whenCode: [CODE] }" },
  )
  .default("always")
  .describe("When a run counts as a change: `always`, `never`, `{ whenOutput: REGEX }`, `{ whenCode: [CODE] }`.");

/** The argument `check` of modules that run a command. */
export const CheckArgument = z
  .boolean()
  .default(false)
  .describe(
    "The command only reads: it runs in dry runs, too, never counts as a change, and its failure fails the step.",
  );

/** Whether the arguments are no `check`, or have no argument that describes a change; a refinement of a module's arguments. */
export function isConsistentCheck(given: {
  readonly check: boolean;
  readonly changed: ChangedArgument;
  readonly revert?: string | undefined;
}): boolean {
  const { check, changed, revert } = given;
  return !check || (revert === undefined && (changed === "always" || changed === "never"));
}
/** The message for arguments that fail {@link isConsistentCheck}. */
export const checkMessage = "a check changes nothing: without revert, whenOutput and whenCode";

type ChangedArgument = z.output<typeof ChangedArgument>;

export const Revert = shellText(Visible.min(1))
  .optional()
  .describe("A command line for /bin/sh that takes the change back, for a step with a risk.");

interface Process {
  readonly cwd?: string | undefined;
  readonly stdin?: string | Secret | undefined;
  readonly successCodes: readonly number[];
  readonly changed: ChangedArgument;
}

interface ProcessText {
  /** The command or script, for the step's effects. */
  readonly text: string;
  readonly before?: Sh;
  /** The command is no builtin of a shell. */
  readonly isProgram?: boolean;
}

/**
 * The parts of a step that runs a command: a check, or a command that always runs and may report whether it changed
 * anything.
 */
export function stepOfProcess(
  command: Sh,
  given: Process & { readonly check: boolean; readonly revert?: ShellText | undefined },
  { text, before = sh``, isProgram = false, ...needs }: ProcessNeeds & ProcessText,
): Pick<Step, "apply" | "brings" | "foresee" | "guard" | "keep" | "probe" | "effects" | "tells" | "always" | "want"> {
  const { check, revert, changed } = given;
  const commandResource = { is: "command", text } as const;
  if (check)
    return {
      effects: { writes: [], reads: [commandResource, ...needsOf(needs)] },
      want: { check: "holds" },
      probe: sh`${before}
${runCommand(command, given)}
fact code "$status"
case ${wordsOf(given.successCodes)} in *" $status "*) fact check holds ;; *) fact check "ended with exit code $status" ;; esac`,
    };
  const tells = changed !== "always";
  return {
    brings: true,
    effects: { writes: changed === "never" ? [] : [commandResource], reads: needsOf(needs) },
    foresee: foreseeNeeds(needs),
    ...(typeof changed === "object" && "whenOutput" in changed ? { guard: guardExpression(changed.whenOutput) } : {}),
    want: {},
    always: true,
    ...(tells ? { tells } : {}),
    ...(revert === undefined ? {} : { keep: sh`on_revert ${revert}` }),
    probe: sh`:`,
    apply: sh`${before}
${runAndReport(command, given, isProgram)}`,
  };
}

/**
 * Runs a command in its folder, with its input, and sets `status`. Modules' texts run in the C locale (LC_ALL); an
 * operator's command gets the locale of LANG instead, which supports UTF-8.
 */
function runCommand(command: Sh, given: Omit<Process, "changed">, into = sh``): Sh {
  return sh`${beginCommand(given)}${command}${into}
status=$?
export LC_ALL=C`;
}

function beginCommand({ cwd, stdin }: Omit<Process, "changed">): Sh {
  return sh`${cwd === undefined ? sh`` : sh`cd -- ${cwd} || exit 1`}
unset LC_ALL
${stdin === undefined ? sh`` : sh`printf %s ${stdin} | `}`;
}

function wordsOf(codes: readonly number[]): string {
  return ` ${codes.join(" ")} `;
}

/**
 * Runs a command, reports its exit code and whether it changed anything, and exits with 0 if the code means success. `isProgram`: the command
 * is no builtin of a shell, so that it may take the place of this one.
 */
function runAndReport(command: Sh, given: Process, isProgram: boolean): Sh {
  const { changed } = given;
  // The command's own exit code says all.
  if (changed === "always" && given.successCodes.every((code) => code === 0))
    return sh`${beginCommand(given)}${isProgram && given.stdin === undefined ? sh`exec ` : sh``}${command}`;
  const byCode = typeof changed === "object" && "whenCode" in changed ? changed.whenCode : [];
  const successCodes = [...given.successCodes, ...byCode];
  return sh`${typeof changed === "object" && "whenOutput" in changed ? runReadingOutput(command, given, changed.whenOutput) : runCommand(command, given)}
${changed === "never" ? sh`same=" same"` : byCode.length > 0 ? sh`case ${wordsOf(byCode)} in *" $status "*) same= ;; *) same=" same" ;; esac` : sh``}
printf 'C %s\n' "$status\${same-}" >&3
case ${wordsOf(successCodes)} in *" $status "*) exit 0 ;; esac
${successCodes.includes(0) ? sh`` : sh`[ "$status" != 0 ] || echo "ended with exit code 0, which is not among successCodes" >&2`}
exit 1`;
}

/**
 * Runs the command, and sets `same` unless a line of its output matches the expression. The output goes to a file: a daemon
 * that the command leaves behind could keep a pipe open, and the step would wait.
 */
function runReadingOutput(command: Sh, given: Process, expression: string): Sh {
  return sh`trap 'cat "$K_TMP/printed"; exit 143' TERM
${runCommand(command, given, sh` >"$K_TMP/printed"`)}
cat "$K_TMP/printed"
if grep -Eq -e ${expression} "$K_TMP/printed"; then same=; else same=" same"; fi`;
}

/**
 * Fails for an invalid expression, before the command runs: grep exits with 2, BusyBox's grep only if it reads a line.
 */
function guardExpression(expression: string): Sh {
  return sh`echo | grep -Eq -e ${expression}
[ $? != 2 ] || { echo ${`whenOutput: grep -E does not take ${expression}`} >&2; exit 1; }`;
}

interface ProcessNeeds {
  readonly cwd?: string | undefined;
  /** A name on PATH, or a path. */
  readonly program?: string | undefined;
}

/** The resources without which a command cannot begin. */
export function needsOf({ cwd, program }: ProcessNeeds): NodeResource[] {
  return [
    ...(cwd === undefined ? [] : [{ is: "existing", path: cwd } as const]),
    ...(program === undefined ? [] : [{ is: "program", name: program } as const]),
    ...(program?.startsWith("/") ? [{ is: "existing", path: program } as const] : []),
  ];
}

/** For a dry run: fails if the folder or the program is missing. A program with a relative path is not checked. */
export function foreseeNeeds({ cwd, program }: ProcessNeeds): Sh {
  const isKnown = program !== undefined && (program.startsWith("/") || !program.includes("/"));
  return sh`${cwd === undefined ? sh`` : sh`[ -d ${cwd} ] || { echo ${`${cwd} is not there, or is no folder`} >&2; exit 1; }`}
${isKnown ? sh`have ${program} || { echo ${`${program}: no such program`} >&2; exit 1; }` : sh``}`;
}
