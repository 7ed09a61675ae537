import { z } from "zod";
import { defineAction } from "#engine/orchestrate/action.ts";
import { Duration } from "#engine/step/fields.ts";
import { shellText } from "#engine/step/shell-text.ts";
import { KcoreError } from "#errors/problem.ts";
import { nodeOf } from "./cluster-context.ts";
import { wholeLines } from "./local-command.ts";
import { hookCommand, runHook } from "./run-hook.ts";

/**
 * Runs the command of an update's drain or gate on the bastion, with KCORE_NODE, KCORE_NODE_ID and KCORE_ADDRESS.
 * ```yaml
 * - { id: web, run: update.hook, command: ./web-ready.sh, within: 60s, repeat: true, each: "{{params.nodes}}" }
 * ```
 */
export const updateHook = defineAction({
  name: "update.hook",
  summary: "Runs the command of an update's drain or gate for a node, on the bastion.",
  outputs: [],
  args: z.strictObject({
    command: shellText(z.string().min(1)).describe("A text for /bin/sh, in the project's folder."),
    within: Duration.describe("How long the command may take; for a gate, all attempts together."),
    repeat: z.boolean().default(false).describe("A gate: the command is repeated until it ends with 0."),
  }),
  async run({ command, within, repeat }, context) {
    const { project, signal } = context;
    const lines = wholeLines(context.output);
    const program = { ...hookCommand(command, nodeOf("update.hook", undefined, context)), cwd: project, signal };
    const limits = { limitSeconds: within, spareSeconds: 0, isRepeated: repeat };
    const { ok, message = "" } = await runHook({ ...program, ...limits, onOutput: lines.onOutput });
    lines.end();
    if (ok) return { changed: true, outputs: {} };
    throw new KcoreError({
      code: "LOCAL_COMMAND_FAILED",
      message: `“${command.slice(0, 200)}” failed`,
      hint: `the command ran in ${project}`,
      detail: message,
    });
  },
  plan: () => Promise.resolve("unknown"),
});
