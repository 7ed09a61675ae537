import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { Duration } from "../step/fields.ts";
import { rebootNode, staleUnits, whyBoot } from "../step/fragments/boot.ts";
import { sh } from "../step/sh.ts";

/**
 * ```yaml
 * reboot.ifRequired: {}
 * ```
 * Boots a node if the running system is older than the installed one. Reasons are Debian's reboot-required file and dnf's
 * needs-restarting(1). A running kernel that is not the newest in /boot, was replaced there, or lost its modules is a
 * reason, too. On NixOS the reason is another kernel, initrd or set of kernel modules than the booted one. The fact `reboot` has the
 * reasons; without a reason nothing changes. If a reason is left after the boot, for example because the boot loader
 * starts the old kernel, the step fails.
 */
export const rebootIfRequired = defineModule({
  name: "reboot.ifRequired",
  summary: "Boots the node when its kernel or its libraries are not those that are installed.",
  alsoKnownAs: ["reboot", "reboot-required", "needrestart", "server.reboot"],
  args: z.strictObject({
    services: z
      .boolean()
      .default(false)
      .describe("Also when a service runs files that an update replaced; service.current restarts those it can."),
    timeout: Duration.default(600).describe("How long the node may take to come back."),
  }),
  refusals: ["TOOL_MISSING"],
  step: ({ services, timeout }) => ({
    effects: { writes: [{ is: "boot" }], reads: [{ is: "packages" }, { is: "system" }] },
    want: { reboot: "not required" },
    probe: sh`${whyBoot}
why=$(why_boot)
${
  services
    ? sh`${staleUnits}
stale=$(stale_units | tr '\n' ' ')
[ -z "$stale" ] || why="$why\${why:+$K_NL}replaced files run in \${stale% }"`
    : sh``
}
fact reboot "\${why:-not required}"`,
    ...rebootNode,
    timeout,
  }),
});
