import { z } from "zod";
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
import { sh } from "../step/sh.ts";
import { shellText, shellWords } from "../step/shell-text.ts";

/**
 * ```yaml
 * command.run: { argv: [locale-gen, --keep-existing], successCodes: [0] }
 * ```
 * The command always runs, unless the step has `creates`, `unless`, `onChanges` or `onlyIf`. Views show “always changes”
 * unless `creates`, `unless` or `changed` tells which run is a change. With `check` the operator promises that the command
 * only reads; dry runs run it, too (docs/states.md, Commands). Give secrets by `stdin`: other users of the
 * node can read a command line and an environment (requirement S-7).
 */
export const commandRun = defineModule({
  name: "command.run",
  summary: "Runs a command.",
  alsoKnownAs: ["command", "shell", "raw", "cmd.run", "cmd.wait", "server.shell", "exec"],
  args: z
    .strictObject({
      cmd: shellText(Visible.min(1)).optional().describe("A command line for /bin/sh."),
      argv: shellWords(z.array(Visible).min(1)).optional().describe("The program and its arguments, without a shell."),
      cwd: AbsolutePath.optional().describe("The working folder of the command."),
      stdin: TextOrSecret.optional().describe(
        "The standard input of the command, which may be secret; by default /dev/null.",
      ),
      successCodes: SuccessCodes,
      changed: ChangedArgument,
      check: CheckArgument,
      revert: Revert,
    })
    .refine(isConsistentCheck, checkMessage)
    .refine(({ cmd, argv }) => (cmd === undefined) !== (argv === undefined), "give either cmd or argv"),
  step: ({ cmd, argv = [], ...given }) =>
    stepOfProcess(cmd === undefined ? sh`${argv}` : sh`sh -c ${cmd}`, given, {
      text: cmd ?? argv.join(" "),
      cwd: given.cwd,
      program: argv[0],
      isProgram: cmd !== undefined || argv[0]?.includes("/") === true,
    }),
});
