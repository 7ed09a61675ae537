import { z } from "zod";
import { blobOf, type Blob } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { UnitName } from "../step/fields.ts";
import { probeFileAt, wantOwnership } from "../step/fragments/files.ts";
import { systemctl, unitProperties, verifyUnit } from "../step/fragments/systemd.ts";
import type { Effects, NodeResource } from "../step/effects.ts";
import { sh, type Sh } from "../step/sh.ts";

const args = z
  .strictObject({
    name: UnitName.describe("The unit; .service is understood."),
    content: z.string().optional().describe("The unit's text."),
    template: z.string().optional().describe("A template under templates/ that makes the text."),
    vars: z.record(z.string(), z.unknown()).optional().describe("More names for the template."),
    dropin: z
      .string()
      .regex(/^[A-Za-z0-9_@.-]+$/, "must be a plain file name such as 10-limits")
      .optional()
      .describe("Write a drop-in of this name beside the unit instead of the unit."),
    enabled: z.boolean().optional().describe("Whether the unit starts at boot; else not managed."),
    verify: z.boolean().default(true).describe("Let systemd-analyze check the text first."),
    state: z.enum(["present", "absent"]).default("present").describe("Whether the file shall be there."),
  })
  .refine(
    ({ content, template, state }) =>
      [content, template].filter((given) => given !== undefined).length === (state === "present" ? 1 : 0),
    "give one of content and template (neither with state: absent)",
  )
  .refine(({ vars, template }) => vars === undefined || template !== undefined, "vars are for a template");

const ownership = { mode: "0644", owner: "root", group: "root" };

/**
 * ```yaml
 * unit.managed:
 *   name: demo
 *   content: |
 *     [Unit]
 *     Description=A demonstration
 *     [Service]
 *     ExecStart=/bin/sleep infinity
 *     [Install]
 *     WantedBy=multi-user.target
 * ```
 * Writes /etc/systemd/system/NAME, or a drop-in NAME.d/DROPIN.conf, 0644 and root's, and makes systemd read it. The step
 * starts and restarts nothing: use `service.running` with `restartOn`. Programs named in the unit may still be missing.
 */
export const unitManaged = defineModule({
  name: "unit.managed",
  summary: "Keeps a systemd unit file or drop-in.",
  alsoKnownAs: ["systemd", "systemd_service", "file.managed", "systemctl", "drop-in", "daemon_reload"],
  args,
  refusals: ["FILE_NO_PARENT", "FILE_PARENT_UNSAFE", "NIXOS_MANAGED", "UNIT_INVALID"],
  step: (given, context) => {
    const { name, content, template, vars, dropin, enabled, verify, state } = given;
    const folder = "/etc/systemd/system";
    const path =
      dropin === undefined ? `${folder}/${name}` : `${folder}/${name}.d/${dropin.replace(/\.conf$/, "")}.conf`;
    const readState = sh`${unitProperties(name, ["NeedDaemonReload", "UnitFileState"])}
fact reload "$NeedDaemonReload"
${
  enabled === false
    ? sh`# A unit without an [Install] section does not start at boot by itself.
case $UnitFileState in static | indirect) UnitFileState=disabled ;; esac`
    : sh``
}
fact enabled "\${UnitFileState:-absent}"`;
    const atBoot = enabled === undefined ? {} : { enabled: enabled ? "enabled" : "disabled" };
    const setBoot = enabled === undefined ? sh`` : sh`systemctl ${enabled ? "enable" : "disable"} -- ${name} || exit 1`;
    const atBootToo: readonly NodeResource[] = enabled === undefined ? [] : [{ is: "service", name }];
    const effects: Effects = {
      writes: [
        { is: "path", path },
        { is: "unit", name },
      ],
      reads: [{ is: "path", path }, ...atBootToo],
    };
    const common = {
      effects,
      tools: [systemctl],
      guard: sh`not_nixos ${path}`,
      // keep_unit records whether the unit is enabled, for the revert.
      keep: sh`${enabled === undefined && !(state === "absent" && dropin === undefined) ? sh`` : sh`keep_unit ${name} keep`}
keep_path ${path}`,
      foresee: sh`foresee_place ${path} 8 1 root root`,
      timeout: 120,
    } as const;
    if (state === "absent")
      return {
        ...common,
        want: { kind: "absent", reload: "no" },
        probe: sh`${readState}
kind_of ${path}
fact kind "$kind"`,
        apply: sh`${dropin === undefined ? sh`[ ! -e ${path} ] || systemctl disable -- ${name} || exit 1` : sh``}
remove_path ${path} 0 && systemctl daemon-reload`,
      };
    const text = template === undefined ? (content ?? "") : context.renderTemplate(template, vars);
    const blob = blobOf(text);
    return {
      ...common,
      want: { kind: "file", content: `sha256:${blob.sha256}`, ...wantOwnership(ownership), reload: "no", ...atBoot },
      probe: sh`${readState}
kind_of ${path}
# A unit of a NixOS configuration is a link to an immutable file: only its content is compared.
if [ "$kind" = symlink ]; then
  case $(readlink -f ${path}) in
    /nix/store/*)
      sum=$(sha256sum <${path}) && [ "\${sum%% *}" = ${blob.sha256} ] || sum=
      [ -z "$sum" ] || kind=nixos
      ;;
  esac
fi
if [ "$kind" = nixos ]; then
  fact kind file && fact content ${`sha256:${blob.sha256}`} && fact mode 0644 && fact owner root && fact group root
  exit 0
fi
${probeFileAt(path, ownership)}`,
      apply: sh`${verify ? refuseInvalid(name, dropin, blob) : sh``}
parent_of ${path} 1
put_file ${blob} ${path} 0644 root root && systemctl daemon-reload || exit 1
${setBoot}`,
      show: sh`[ ! -f ${path} ] || cat <${path}`,
      shown: text,
    };
  },
});

/** Refuses a text that systemd-analyze does not accept; a drop-in is checked together with its unit. */
function refuseInvalid(name: string, dropin: string | undefined, blob: Blob): Sh {
  const prepare =
    dropin === undefined
      ? sh`cat <${blob} >"$unit" || exit 1`
      : sh`base=$(systemctl show -p FragmentPath -- ${name}) && base=\${base#*=}
if [ -f "$base" ]; then cat <"$base" >"$unit"; else printf '[Service]\nExecStart=/bin/true\n' >"$unit"; fi
mkdir -p "$unit.d" && cat <${blob} >"$unit.d/new.conf" || exit 1`;
  return sh`mkdir -p "$K_TMP/verify" && unit=$K_TMP/verify/${name} || exit 1
${prepare}
${verifyUnit(name)}`;
}
