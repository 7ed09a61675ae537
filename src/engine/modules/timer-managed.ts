import { z } from "zod";
import { blobOf } from "../step/blob.ts";
import { defineModule, type StepFacts } from "../step/define.ts";
import { UnitName, UserName } from "../step/fields.ts";
import { requireUser } from "../step/fragments/accounts.ts";
import { probeFile, putFile, wantFile, type ConfigFile, fileStepParts } from "../step/fragments/config-file.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { systemctl, unitProperties, verifyUnit } from "../step/fragments/systemd.ts";
import { serviceText, timerText } from "../step/fragments/timer.ts";
import type { Effects } from "../step/effects.ts";
import { sh, shLines } from "../step/sh.ts";
import { shellText, shellWords } from "../step/shell-text.ts";

const Line = z.string().regex(/^[^\0\n]*\S[^\0\n]*$/, "must be one line");

/** A time span (systemd.time(7)); on the node systemd-analyze refuses invalid ones. */
const Span = z.string().regex(/^[0-9][0-9a-zA-Z. ]*$/, 'must be a time span such as "15min" or "1h 30s"');

const args = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9:_@-][A-Za-z0-9:_.@-]{0,200}$/, "must be a unit's name without its suffix")
      .refine((name) => !/\.(timer|service)$/.test(name), "must be without .timer and .service")
      .describe("The name of NAME.timer, and of NAME.service if the timer runs a command."),
    command: z
      .union([shellText(Line), shellWords(z.array(z.string().regex(/^[^\0\n]*$/, "must be one line")).min(1))])
      .optional()
      .describe("The job: a command line for /bin/sh, or a program by its whole path and its arguments."),
    service: UnitName.optional().describe("Instead of command: an existing unit that the timer starts."),
    onCalendar: z
      .union([Line.transform((one) => [one]), z.array(Line).min(1)])
      .default([])
      .describe("When, as systemd.time(7) has it: daily, Mon..Fri 02:30."),
    onBootSec: Span.optional().describe("The time from the boot to a start."),
    onUnitActiveSec: Span.optional().describe("The time from one start to the next."),
    persistent: z
      .boolean()
      .default(false)
      .describe("Make up for a turn of onCalendar that was missed while the node was off."),
    randomizedDelay: Span.optional().describe("The most that a start is delayed, at random."),
    user: UserName.optional().describe("The user who runs the command; root if not given."),
    environment: z
      .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable's name"), z.string().regex(/^[^\0\n]*$/))
      .default({})
      .describe("Variables of the command; every user of the node can read them."),
    description: Line.optional().describe("The description that systemd shows."),
    state: z.enum(["present", "absent"]).default("present").describe("Whether the timer shall be there."),
  })
  .superRefine((given, context) => {
    const refuse = (message: string): void => context.addIssue({ code: "custom", message });
    const { command, service, state, onCalendar, onBootSec, onUnitActiveSec, user, environment } = given;
    const what = [command, service].filter((one) => one !== undefined).length;
    const isTimed = onCalendar.length > 0 || onBootSec !== undefined || onUnitActiveSec !== undefined;
    if (state === "absent") {
      if (what > 0 || isTimed) refuse("an absent timer has a name alone");
      return;
    }
    if (what !== 1) refuse("give one of command and service");
    if (!isTimed) refuse("give at least one of onCalendar, onBootSec and onUnitActiveSec");
    if (onUnitActiveSec !== undefined && onCalendar.length === 0 && onBootSec === undefined)
      refuse("onUnitActiveSec alone never begins: give onBootSec or onCalendar too");
    if (given.persistent && onCalendar.length === 0) refuse("persistent is for onCalendar");
    if (service !== undefined && (user !== undefined || Object.keys(environment).length > 0))
      refuse("user and environment are for a command");
    if (Array.isArray(command) && !command[0]?.startsWith("/")) refuse("a program needs its whole path");
  });

/**
 * ```yaml
 * timer.managed:
 *   name: backup
 *   command: /usr/local/bin/backup --day "$(date +%F)"
 *   onCalendar: Mon..Fri 02:30
 *   persistent: true
 *   randomizedDelay: 10min
 *   user: backup
 * ```
 * A timer of systemd in /etc/systemd/system, enabled and running, with the service that it starts. kcore escapes `%` and
 * `$` of a command for systemd; the command's user must exist. systemd-analyze checks both units before they are written.
 * A foreign service of that name is refused: give it as `service`. A running service is not stopped.
 */
export const timerManaged = defineModule({
  name: "timer.managed",
  summary: "Keeps a timer of systemd, and the service that it starts.",
  alsoKnownAs: ["cron", "schedule.present"],
  args,
  refusals: ["UNIT_INVALID", "USER_MISSING", ...fileRefusals],
  step: ({ name, state, service, ...given }) => {
    const fileOf = (fact: string, text: string): ConfigFile => ({
      fact,
      path: `/etc/systemd/system/${name}.${fact}`,
      blob: blobOf(text),
    });
    const unit = `${name}.timer`;
    const text = timerText({ ...given, name, service });
    const timer = fileOf("timer", text);
    const own = fileOf("service", serviceText({ ...given, name }));
    const files = service === undefined && state === "present" ? [timer, own] : [timer];
    const { resources, keep } = fileStepParts([timer.path, own.path]);
    const { guard, foresee } = fileStepParts(files.map(({ path }) => path));
    const effects: Effects = {
      writes: [...resources, { is: "service", name: unit }],
      reads: [...resources, { is: "service", name: unit }],
    };
    const common = {
      effects,
      tools: [systemctl],
      keep: sh`keep_unit ${unit} restart
${keep}`,
      timeout: 120,
    } as const;
    const readState = unitProperties(unit, ["ActiveState", "NeedDaemonReload", "UnitFileState"]);
    // The first line shows whether the service is kcore's.
    const ours = sh`owner=
[ ! -f ${own.path} ] || IFS= read -r owner <${own.path} || :
if [ "$owner" = "# Managed by kcore." ]; then owner=ours; elif [ -e ${own.path} ]; then owner=another; else owner=; fi`;
    if (state === "absent")
      return {
        ...common,
        want: { timer: "absent", service: "not ours", enabled: "absent", active: "inactive" },
        probe: sh`${readState}
${probeFile(timer)}
${ours}
if [ "$owner" = ours ]; then fact service ours; else fact service "not ours"; fi
fact enabled "\${UnitFileState:-absent}"
fact active "$ActiveState"`,
        guard: sh`${guard}at=$(systemctl show -p FragmentPath -- ${unit}) && at=\${at#*=} || exit 1
[ -z "$at" ] || [ -e ${timer.path} ] || refuse FILE_IN_THE_WAY "$at was not made by kcore: ${`service.stopped for ${unit}`} keeps it from running"`,
        foresee,
        apply: sh`${ours}
[ ! -e ${timer.path} ] || systemctl disable --now -- ${unit} || exit 1
remove_path ${timer.path} 0 || exit 1
[ "$owner" != ours ] || remove_path ${own.path} 0 || exit 1
systemctl daemon-reload || exit 1
# systemd remembers the failure of a removed unit until it is reset.
[ "$(had active)" != failed ] || systemctl reset-failed -- ${unit} || :`,
      };
    const wanted: StepFacts = Object.fromEntries(files.flatMap((file) => Object.entries(wantFile(file))));
    const verifyUnits = sh`mkdir -p "$K_TMP/verify" || exit 1
${shLines(files.map(({ fact, blob }) => sh`cat <${blob} >"$K_TMP/verify/"${`${name}.${fact}`} || exit 1`))}
${shLines(
  files.map(
    ({ fact }) => sh`unit=$K_TMP/verify/${`${name}.${fact}`}
${verifyUnit(`${name}.${fact}`)}`,
  ),
)}`;
    return requireUser(given.user ?? "root", {
      ...common,
      want: { ...wanted, reload: "no", enabled: "enabled", active: "active" },
      probe: sh`${readState}
${shLines(files.map(probeFile))}
fact reload "$NeedDaemonReload"
fact enabled "\${UnitFileState:-absent}"
fact active "$ActiveState"`,
      guard: sh`${guard}${
        service === undefined
          ? sh`${ours}
if [ "$owner" != ours ]; then
  at=$(systemctl show -p FragmentPath -- ${`${name}.service`}) && at=\${at#*=} || exit 1
  [ -z "$at" ] || refuse FILE_IN_THE_WAY "$at was not made by kcore: give "${`service: ${name}`}" instead of command, or another name"
fi`
          : sh`:`
      }`,
      foresee: sh`${foresee}${verifyUnits}`,
      apply: sh`${verifyUnits}
${shLines(files.map(putFile))}
systemctl daemon-reload && systemctl enable -- ${unit} || exit 1
# A running timer uses its old text until it is restarted.
if [ "$(had timer)" = ${wanted["timer"] ?? ""} ]; then systemctl start -- ${unit}; else systemctl restart -- ${unit}; fi`,
      show: sh`[ ! -f ${timer.path} ] || cat <${timer.path}`,
      shown: text,
    });
  },
});
