import { z } from "zod";
import { blobOf, hidden, type Blob } from "../module/blob.ts";
import { defineModule } from "../module/define.ts";
import { AbsolutePath, Text } from "../module/fields.ts";
import { Env, SuccessCodes, Visible, withProcess } from "../module/fragments/process.ts";
import { Secret } from "../module/secret.ts";
import { sh } from "../module/sh.ts";

/**
 * ```yaml
 * script.run:
 *   text: |
 *     set -eu
 *     echo "hello $1"
 *   args: [world]
 * ```
 * The script travels as a file of the run that only root can read and that goes away with it; its text is in no argv. Always
 * runs unless the step has `creates`, `unless`, `onChanges` or `onlyIf`.
 */
export const scriptRun = defineModule({
  name: "script.run",
  summary: "Runs a script.",
  args: z
    .strictObject({
      text: Text.optional().describe("The script itself."),
      source: z.string().optional().describe("A file of the project that is the script."),
      interpreter: z
        .array(Visible)
        .min(1)
        .default(["/bin/sh"])
        .describe("The program that runs it, with its own options."),
      args: z.array(Visible).default([]).describe("The script's arguments."),
      cwd: AbsolutePath.optional().describe("The folder to run it in."),
      env: Env,
      stdin: Text.optional().describe("What it reads; may be secret. Else it reads /dev/null."),
      successCodes: SuccessCodes,
    })
    .refine(({ text, source }) => (text === undefined) !== (source === undefined), "give either text or source"),
  step: ({ text, source, interpreter, args, ...process }, context) => {
    const sensitive = context.sensitive === true || text instanceof Secret;
    const script =
      source === undefined
        ? blobOf(text instanceof Secret ? text.reveal() : (text ?? ""), { sensitive })
        : hide(context.readFile(source), sensitive);
    return {
      want: {},
      always: true,
      probe: sh`:`,
      apply: withProcess(sh`${interpreter} ${script} ${args}`, process),
      timeout: 600,
    };
  },
});

function hide(blob: Blob, sensitive: boolean): Blob {
  return sensitive ? hidden(blob) : blob;
}
