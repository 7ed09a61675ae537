import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath, Duration } from "../step/fields.ts";
import { rebootNode } from "../step/fragments/boot.ts";
import { sh } from "../step/sh.ts";

/**
 * ```yaml
 * reboot.done: { ifFile: /run/reboot-required }
 * ```
 * The step is in order if the node has booted since the run began, or, with `ifFile`, if that file is absent. So a run with
 * any number of such steps boots a node at most once. The bastion waits for the new boot and continues with the next step.
 */
export const rebootDone = defineModule({
  name: "reboot.done",
  summary: "Boots the node anew, once a run, where it is needed.",
  alsoKnownAs: ["reboot", "system.reboot", "server.reboot", "shutdown"],
  args: z
    .strictObject({
      ifFile: AbsolutePath.optional().describe("Boot only if this file exists."),
      always: z.boolean().default(false).describe("Boot in every run."),
      timeout: Duration.default(600).describe("How long the node may take to come back."),
    })
    .refine(({ ifFile, always }) => (ifFile !== undefined) !== always, "give either ifFile or always: true"),
  refusals: ["TOOL_MISSING"],
  step: ({ ifFile, timeout }) => ({
    effects: { writes: [{ is: "boot" }], reads: ifFile === undefined ? [] : [{ is: "path", path: ifFile }] },
    want: { reboot: "done" },
    probe: sh`IFS= read -r boot </proc/sys/kernel/random/boot_id || exit 1
if [ "$boot" != "$K_BOOT_ID" ]; then fact reboot done
${ifFile === undefined ? sh`` : sh`elif [ ! -e ${ifFile} ]; then fact reboot done`}
else fact reboot needed; fi`,
    ...rebootNode,
    timeout,
  }),
});
