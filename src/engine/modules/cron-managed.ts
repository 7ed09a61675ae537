import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { requireUser } from "../step/fragments/accounts.ts";
import { Command, EtcName, Schedule } from "../step/fragments/cron.ts";
import { absentRefusals, stepOfData } from "../step/fragments/files.ts";
import { stepOfFile } from "./file-managed.ts";

/** A value in crontab(5) has no escapes: quotes keep its blanks, so it may contain only the other kind of quotes. */
const Value = z
  .string()
  .regex(/^[^\0\n]*$/, "must be one line")
  .refine(
    (value) => !(value.includes('"') && value.includes("'")),
    "cron takes one kind of quotes in a value, not both",
  );

/**
 * ```yaml
 * cron.managed:
 *   name: backup
 *   schedule: "30 2 * * 1-5"
 *   user: backup
 *   command: /usr/local/bin/backup --day "$(date +%F)"
 *   environment: { MAILTO: ops@example.org }
 * ```
 * One job in a file of its own, /etc/cron.d/NAME (crontab(5)); the job's user must exist. Write a plain `%`: kcore escapes
 * it for cron. Where cron reads no /etc/cron.d, as BusyBox's crond, that folder is missing, and the step is refused
 * (FILE_NO_PARENT): use `timer.managed` there, if the node has systemd.
 */
export const cronManaged = defineModule({
  name: "cron.managed",
  summary: "Keeps a job of cron in a file of its own.",
  alsoKnownAs: ["cron", "cron.present", "cron.file", "server.crontab", "crontab"],
  args: z
    .strictObject({
      name: EtcName.describe("The file in /etc/cron.d."),
      schedule: Schedule.optional().describe("Minute, hour, day, month and weekday, or a word such as @daily."),
      command: Command.optional().describe("A command line for /bin/sh."),
      user: z
        .string()
        .regex(/^[a-z_][a-z0-9_-]{0,31}\$?$/, "must be a user's name")
        .default("root")
        .describe("The user who runs the job."),
      environment: z
        .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable's name"), Value)
        .default({})
        .describe("Variables, MAILTO and PATH among them; every user of the node can read them."),
      state: z.enum(["present", "absent"]).default("present").describe("Whether the job shall be there."),
    })
    .refine(
      ({ state, schedule, command }) =>
        [schedule, command].every((one) => (one !== undefined) === (state === "present")),
      "give schedule and command (neither with state: absent)",
    ),
  refusals: ["FILE_IN_THE_WAY", "USER_MISSING", ...absentRefusals],
  step: ({ name, schedule = "", command = "", user, environment, state }, context) => {
    const path = `/etc/cron.d/${name}`;
    if (state === "absent") return stepOfData({ kind: "absent", path, recurse: false });
    const variables = Object.entries(environment).map(([key, value]) => `${key}=${quoted(value)}\n`);
    const content = `# Managed by kcore.\n${variables.join("")}${schedule} ${user} ${command.replaceAll("%", String.raw`\%`)}\n`;
    return requireUser(user, stepOfFile({ path, content, mode: "0644" }, context));
  },
});

function quoted(value: string): string {
  return value.includes('"') ? `'${value}'` : `"${value}"`;
}
