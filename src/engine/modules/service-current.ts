import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { UnitName } from "../step/fields.ts";
import { staleUnits } from "../step/fragments/boot.ts";
import { orRefuse, systemctl } from "../step/fragments/systemd.ts";
import { rawSh, sh } from "../step/sh.ts";

/**
 * Units that only a boot renews: their restart would end sessions, or break systemd and other clients (needrestart excludes
 * the same units).
 */
const neverRestarted = [
  "dbus.service",
  "dbus-broker.service",
  "systemd-logind.service",
  "systemd-user-sessions.service",
];

/**
 * ```yaml
 * service.current: { except: [postgresql.service] }
 * ```
 * After an update, services continue with the programs and libraries that they were started with. Such services are
 * restarted one by one; systemd re-executes itself, which ends no service. dbus, logind and services in `except` are only
 * reported: reboot.ifRequired with `services: true` boots for them.
 */
export const serviceCurrent = defineModule({
  name: "service.current",
  summary: "Restarts services that run programs or libraries which an update replaced.",
  alsoKnownAs: ["needrestart", "systemd", "service.running", "restart"],
  args: z.strictObject({
    except: z.array(UnitName).default([]).describe("Services that are left as they are."),
  }),
  refusals: ["SERVICE_FAILED"],
  step: ({ except }) => {
    const readState = sh`${staleUnits}
excepted= stale=
for unit in $(stale_units); do
  case " "${[...neverRestarted, ...except].join(" ")}" " in *" $unit "*) excepted="$excepted $unit" ;; *) stale="$stale $unit" ;; esac
done`;
    return {
      effects: { writes: [{ is: "service", name: "*" }], reads: [{ is: "packages" }, { is: "system" }] },
      want: { replaced: "none" },
      probe: sh`${readState}
excepted=\${excepted# } stale=\${stale# }
fact left "\${excepted:-none}"
fact replaced "\${stale:-none}"`,
      apply: sh`${readState}
for unit in $stale; do
  if [ "$unit" = init ]; then systemctl daemon-reexec || exit 1; continue; fi
  note "restarting $unit"
  systemctl try-restart -- "$unit" ${orRefuse(rawSh('"$unit"'), "SERVICE_FAILED", sh`"$unit did not come up again"`)}
done`,
      tools: [systemctl],
      timeout: 300,
    };
  },
});
