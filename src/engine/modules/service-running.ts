import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath, Duration, UnitName } from "../step/fields.ts";
import {
  awaitProgram,
  comesFrom,
  foreseeStart,
  refuseUnlessUp,
  orRefuse,
  refuseStatic,
  reloadIfNeeded,
  refuseUnlessStable,
  systemctl,
  reportProgram,
  unitProperties,
} from "../step/fragments/systemd.ts";
import { sh } from "../step/sh.ts";

/**
 * ```yaml
 * service.running: { name: kcore-controller, verifyFor: 5s }
 * ```
 * Starts the unit if it is not active, and enables it if it is not enabled. With `restartOn` or `onChanges` the unit is
 * restarted after a change by a watched step; with `onChange: reload` it is reloaded instead if the unit supports that. A
 * masked unit is refused unless `unmask` is set. `runsFrom` is for a unit that starts its program through a link, such as a
 * Nix profile: a unit that still runs a program from another folder is restarted.
 */
export const serviceRunning = defineModule({
  name: "service.running",
  summary: "Keeps a systemd unit running, and enabled at boot unless told otherwise.",
  alsoKnownAs: ["service", "systemd", "systemd_service", "service.enabled", "systemd.service", "systemctl"],
  args: z.strictObject({
    name: UnitName.describe("The unit; .service is understood."),
    enabled: z
      .union([z.boolean(), z.literal("keep")])
      .default(true)
      .describe("Whether the unit starts at boot; keep: not managed."),
    unmask: z.boolean().default(false).describe("Take a mask off the unit."),
    verifyFor: Duration.default(0).describe("How long the unit must stay up after a start or restart."),
    onChange: z.enum(["restart", "reload"]).default("restart").describe("The reaction to a change of a watched step."),
    runsFrom: AbsolutePath.optional().describe(
      "The folder of the main process's program: a unit that runs another program is restarted.",
    ),
  }),
  refusals: ["SERVICE_FAILED", "SERVICE_UNSTABLE", "UNIT_MASKED", "UNIT_STATIC"],
  step: ({ name, enabled, unmask, verifyFor, onChange, runsFrom }) => ({
    effects: { writes: [{ is: "service", name }], reads: [{ is: "service", name }] },
    want: {
      active: "active",
      ...(enabled === "keep" ? {} : { enabled: enabled ? "enabled" : "disabled" }),
      ...(runsFrom === undefined ? {} : { program: runsFrom }),
    },
    probe: sh`${unitProperties(name, ["ActiveState", "LoadState", "UnitFileState", ...(runsFrom === undefined ? [] : ["MainPID" as const])])}
case $LoadState in loaded) ;; *) ActiveState=$LoadState ;; esac
case $ActiveState in reloading | refreshing) ActiveState=active ;; esac
# An alias belongs to an enabled unit; a generated unit is enabled at every boot by its generator. A unit without an
# [Install] section does not start at boot by itself.
case $UnitFileState in alias | generated) UnitFileState=enabled ;; '') UnitFileState=absent ;; esac
${enabled === false ? sh`case $UnitFileState in static | indirect) UnitFileState=disabled ;; esac` : sh``}
${refuseUnlessUp(name)}
fact active "$ActiveState"
fact enabled "$UnitFileState"
${runsFrom === undefined ? sh`` : reportProgram(runsFrom)}`,
    guard: unmask
      ? sh`:`
      : sh`case $(systemctl show -p UnitFileState -- ${name}) in
  *=masked*) refuse UNIT_MASKED ${`${name} is masked`} ;;
esac`,
    foresee: foreseeStart(name, enabled === true),
    apply: sh`${unmask ? sh`systemctl unmask -- ${name} || exit 1` : sh``}
${reloadIfNeeded(name)}
${
  enabled === "keep"
    ? sh``
    : sh`case $(systemctl show -p UnitFileState -- ${name}) in
  *=static | *=indirect) ${enabled ? refuseStatic(name) : sh`:`} ;;
  *) systemctl ${enabled ? "enable" : "disable"} -- ${name} || exit 1 ;;
esac`
}
if ! systemctl -q is-active -- ${name}; then
  systemctl -q reset-failed -- ${name} 2>/dev/null
  systemctl start -- ${name} ${orRefuse(name, "SERVICE_FAILED", `${name} did not start`)}
  ${refuseUnlessStable(name, verifyFor)}
  : >"$K_TMP/started"${
    runsFrom === undefined
      ? sh``
      : sh`
elif ! { ${comesFrom(name, runsFrom)}; }; then
  systemctl restart -- ${name} ${orRefuse(name, "SERVICE_FAILED", `${name} did not restart`)}
  ${refuseUnlessStable(name, verifyFor)}
  : >"$K_TMP/started"`
  }
fi${
      runsFrom === undefined
        ? sh``
        : sh`
${awaitProgram(name, runsFrom)}`
    }`,
    keep: sh`keep_unit ${name} ${onChange === "reload" ? "reload-or-restart" : "restart"}`,
    // A unit that apply has just started runs with every change already.
    react: sh`[ ! -e "$K_TMP/started" ] || exit 0
${reloadIfNeeded(name)}
systemctl ${onChange === "reload" ? "reload-or-restart" : "restart"} -- ${name} ${orRefuse(name, "SERVICE_FAILED", `${name} did not ${onChange}`)}
${refuseUnlessStable(name, verifyFor)}
: >"$K_TMP/restarted"`,
    tools: [systemctl],
    timeout: 180 + verifyFor,
  }),
});
