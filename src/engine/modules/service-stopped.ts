import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { UnitName } from "../step/fields.ts";
import { orRefuse, systemctl, unitProperties } from "../step/fragments/systemd.ts";
import { sh } from "../step/sh.ts";

/**
 * ```yaml
 * service.stopped: { name: apt-daily.timer }
 * ```
 * A missing unit counts as stopped. If a socket or timer would start the unit again, that socket or timer needs a step
 * of its own; `mask: true` prevents every start.
 */
export const serviceStopped = defineModule({
  name: "service.stopped",
  summary: "Keeps a systemd unit stopped, and disabled at boot unless told otherwise.",
  alsoKnownAs: [
    "service",
    "systemd",
    "systemd_service",
    "service.dead",
    "service.disabled",
    "service.masked",
    "systemctl",
  ],
  args: z.strictObject({
    name: UnitName.describe("The unit; .service is understood."),
    enabled: z
      .union([z.boolean(), z.literal("keep")])
      .default(false)
      .describe("Whether the unit starts at boot; keep: not managed."),
    mask: z.boolean().default(false).describe("Mask the unit, so that nothing can start it."),
  }),
  refusals: ["SERVICE_FAILED"],
  step: ({ name, enabled, mask }) => {
    const atBoot = mask ? "masked" : enabled === true ? "enabled" : "disabled";
    return {
      effects: { writes: [{ is: "service", name }], reads: [{ is: "noService", name }] },
      want: { active: "inactive", ...(enabled === "keep" && !mask ? {} : { enabled: atBoot }) },
      probe: sh`${unitProperties(name, ["ActiveState", "UnitFileState"])}
[ "$ActiveState" != failed ] || ActiveState=inactive
${
  atBoot === "disabled"
    ? sh`# A unit that is missing, masked or without an [Install] section does not start at boot by itself.
case $UnitFileState in '' | static | indirect | masked*) UnitFileState=disabled ;; esac`
    : sh`[ "$UnitFileState" != masked-runtime ] || UnitFileState=masked`
}
fact active "$ActiveState"
fact enabled "$UnitFileState"`,
      ...(!mask && { keep: sh`keep_unit ${name} start` }),
      apply: sh`${mask || enabled === "keep" ? sh`` : sh`systemctl ${enabled ? "enable" : "disable"} -- ${name} || exit 1`}
systemctl stop -- ${name} ${orRefuse(name, "SERVICE_FAILED", `${name} did not stop`)}
${mask ? sh`systemctl mask -- ${name}` : sh``}`,
      tools: [systemctl],
      timeout: 180,
    };
  },
});
