import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath, Text } from "../step/fields.ts";
import {
  Env,
  foreseeNeeds,
  keepRevert,
  needsOf,
  Revert,
  SuccessCodes,
  Visible,
  withProcess,
} from "../step/fragments/process.ts";
import { sh } from "../step/sh.ts";

/**
 * ```yaml
 * command.run: { argv: [locale-gen, --keep-existing], successCodes: [0] }
 * ```
 * Always runs unless the step has `creates`, `unless`, `onChanges` or `onlyIf`; shown as “always changes”. What is secret
 * goes in by `stdin`: a command line and an environment can be read by others on the node (requirement S-7).
 */
export const commandRun = defineModule({
  name: "command.run",
  summary: "Runs a command.",
  alsoKnownAs: ["command", "shell", "raw", "cmd.run", "cmd.wait", "server.shell", "exec"],
  args: z
    .strictObject({
      cmd: Visible.min(1).optional().describe("A command line for /bin/sh."),
      argv: z.array(Visible).min(1).optional().describe("The program and its arguments, without a shell."),
      cwd: AbsolutePath.optional().describe("The folder to run it in."),
      env: Env,
      stdin: Text.optional().describe("What it reads; may be secret. Else it reads /dev/null."),
      successCodes: SuccessCodes,
      revert: Revert,
    })
    .refine(({ cmd, argv }) => (cmd === undefined) !== (argv === undefined), "give either cmd or argv"),
  step: ({ cmd, argv = [], revert, ...process }) => ({
    brings: true,
    reach: {
      changes: [{ is: "command", text: cmd ?? argv.join(" ") }],
      restsOn: needsOf({ cwd: process.cwd, program: argv[0] }),
    },
    foresee: foreseeNeeds({ cwd: process.cwd, program: argv[0] }, process),
    want: {},
    always: true,
    ...keepRevert(revert),
    probe: sh`:`,
    apply: withProcess(cmd === undefined ? sh`${argv}` : sh`sh -c ${cmd}`, process),
  }),
});
