import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { type Blob, asSensitive } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { AbsolutePath, TextOrSecret } from "../step/fields.ts";
import {
  ChangedArgument,
  CheckArgument,
  isConsistentCheck,
  Revert,
  stepOfProcess,
  SuccessCodes,
  Visible,
  checkMessage,
} from "../step/fragments/process.ts";
import type { Secret } from "../step/secret.ts";
import { sh } from "../step/sh.ts";
import { shellOf, shellText } from "../step/shell-text.ts";

/**
 * ```yaml
 * script.run:
 *   text: |
 *     set -eu
 *     echo "hello $1"
 *   args: [world]
 * ```
 * The script runs from a file that only the step's user can read and that is removed at the end; no argv contains its
 * text. With `runAs` give the script as `text`. The script always runs, unless the step has `creates`, `unless`,
 * `onChanges` or `onlyIf`. `changed` tells which run is a change. With `check` the operator promises that the script only
 * reads; dry runs run it, too (docs/states.md, Commands).
 */
export const scriptRun = defineModule({
  name: "script.run",
  summary: "Runs a script.",
  alsoKnownAs: ["script", "shell", "cmd.script", "server.script"],
  args: z
    .strictObject({
      // Only a shell's text is checked as sh: other interpreters have other quoting.
      text: shellText(TextOrSecret, ({ interpreter }) => shellAmong(interpreter))
        .optional()
        .describe("The script itself."),
      source: z.string().optional().describe("A file of the project that is the script."),
      interpreter: z
        .array(Visible)
        .min(1)
        .default(["/bin/sh"])
        .describe("The program that runs the script, with its own options."),
      args: z.array(Visible).default([]).describe("The script's arguments."),
      cwd: AbsolutePath.optional().describe("The working folder of the script."),
      stdin: TextOrSecret.optional().describe(
        "The standard input of the script, which may be secret; by default /dev/null.",
      ),
      successCodes: SuccessCodes,
      changed: ChangedArgument,
      check: CheckArgument,
      revert: Revert,
    })
    .refine(isConsistentCheck, checkMessage)
    .refine(({ text, source }) => (text === undefined) !== (source === undefined), "give either text or source"),
  refusals: ["FILE_UNREADABLE"],
  step: ({ text, source, interpreter, args, ...given }, context) => {
    const blob = source === undefined ? undefined : context.readFile(source);
    // Only the first line is checked: a script may be followed by data.
    if (shellAmong(interpreter) !== undefined && blob?.bytes?.[blob.bytes.indexOf(10) - 1] === 13)
      throw new KcoreError({
        code: "SHELL_SYNTAX",
        message: `${source} has CR LF at its lines' ends, and a shell takes the CR for part of a word`,
        hint: `sed -i 's/\\r$//' ${source}`,
      });
    const bytes = blob !== undefined && context.sensitive === true ? asSensitive(blob) : blob;
    // The user of runAs cannot read blobs, so a text is not sent as a blob; printf is a builtin, so no argv contains the text.
    const before = sh`script=$(mktemp "$K_TMP/script.XXXXXX") && trap 'rm -f "$script"' EXIT || exit 1
${
  bytes === undefined
    ? sh`printf %s ${text ?? ""} >"$script" || exit 1`
    : sh`cat <${bytes} >"$script" || refuse FILE_UNREADABLE "a step with runAs cannot use source: give the script as text"`
}`;
    return {
      ...stepOfProcess(sh`${interpreter} "$script" ${args}`, given, {
        text: [scriptText(text, blob), ...args].join(" "),
        before,
        cwd: given.cwd,
        program: interpreter[0],
      }),
      timeout: 600,
    };
  },
});

/** The shell among the interpreter's words; undefined if there is none, or if the words are not known yet. */
function shellAmong(interpreter: unknown = ["sh"]): string | undefined {
  return Array.isArray(interpreter) ? interpreter.map(shellOf).find((name) => name !== undefined) : undefined;
}

/** The script's text for the step's effects; empty if the text is secret or unknown. */
function scriptText(text: string | Secret | undefined, blob: Blob | undefined): string {
  if (typeof text === "string") return text;
  return blob?.bytes === undefined || blob.sensitive ? "" : Buffer.from(blob.bytes).toString("utf8");
}
