import { z } from "zod";
import { blobOf, type Blob } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { EtcName } from "../step/fragments/cron.ts";
import { absentRefusals, stepOfData, type FileStep } from "../step/fragments/files.ts";
import { refuseSudoLockout } from "../step/fragments/sudo.ts";
import { sh, type Sh } from "../step/sh.ts";
import { stepOfCheckedFile } from "./file-managed.ts";

const Account = z.string().regex(/^[a-z_][a-z0-9_-]{0,31}\$?$/, "must be a user's or group's name");

const folder = "/etc/sudoers.d";

/**
 * ```yaml
 * sudoers.managed:
 *   name: deploy
 *   group: deploy
 *   commands: [/usr/bin/systemctl restart shop.service, /usr/bin/journalctl]
 *   noPassword: true
 * ```
 * A file of its own in /etc/sudoers.d, 0440. Before it is written, visudo(8) checks the text alone, and together with
 * /etc/sudoers and all other files. A text that would break sudo is refused, and the old file stays. A command without
 * arguments allows all arguments (sudoers(5)). A change after which this run's user could not use sudo is refused,
 * unless the step is on trial (`risk: connectivity`). This check ignores whether sudo would ask for a password.
 */
export const sudoersManaged = defineModule({
  name: "sudoers.managed",
  summary: "Keeps who may do what by sudo in a file of its own.",
  alsoKnownAs: ["sudoers", "sudo", "visudo"],
  args: z
    .strictObject({
      name: EtcName.describe("The file in /etc/sudoers.d."),
      user: Account.optional().describe("The user who may run the commands."),
      group: Account.optional().describe("The group whose members may run the commands."),
      commands: z
        .array(
          z
            .string()
            .regex(
              /^(ALL|sudoedit \/[^\0\n]*|\/[^\0\n]*)$/,
              "must be a program's whole path, perhaps with arguments, or ALL",
            ),
        )
        .min(1)
        .optional()
        .describe("The allowed programs, each by its whole path; ALL: any."),
      runAs: z
        .array(z.union([z.literal("ALL"), Account]))
        .min(1)
        .optional()
        .describe("The users to run the commands as; root if not given, ALL: any user."),
      noPassword: z.boolean().optional().describe("Let sudo ask for no password."),
      content: z.string().optional().describe("The file's text, instead of a rule of these arguments."),
      state: z.enum(["present", "absent"]).default("present").describe("Whether the file shall be there."),
    })
    .superRefine((given, context) => {
      const { user, group, commands, runAs, noPassword, content, state } = given;
      const who = [user, group].filter((one) => one !== undefined).length;
      const isRule = who === 1 && commands !== undefined;
      const isNoRule = [user, group, commands, runAs, noPassword].every((one) => one === undefined);
      const fits = state === "absent" ? isNoRule && content === undefined : content === undefined ? isRule : isNoRule;
      if (!fits)
        context.addIssue({
          code: "custom",
          message: "give one of user and group with commands, or content (neither with state: absent)",
        });
    }),
  refusals: ["FILE_INVALID", "FILE_IN_THE_WAY", "SUDO_LOCKS_OUT", ...absentRefusals],
  step: ({ name, state, ...given }, context) => {
    const path = `${folder}/${name}`;
    const withLockoutGuard = (step: FileStep, blob?: Blob): FileStep => ({
      ...step,
      data: undefined,
      guard:
        context.onTrial === true
          ? step.guard
          : sh`${step.guard}
${refuseSudoLockout(name, blob)}`,
    });
    if (state === "absent") return withLockoutGuard(stepOfData({ kind: "absent", path, recurse: false }));
    const content = given.content ?? ruleText(given);
    const step = stepOfCheckedFile({ path, content, mode: "0440" }, refuseInvalid(name, content), context);
    return { ...withLockoutGuard(step, blobOf(content)), tools: [{ command: "visudo", package: "sudo" }] };
  },
});

interface Rule {
  readonly user?: string | undefined;
  readonly group?: string | undefined;
  readonly commands?: readonly string[] | undefined;
  readonly runAs?: readonly string[] | undefined;
  readonly noPassword?: boolean | undefined;
}

/** The file's text (sudoers(5)): in a command `,`, `:`, `=`, `#`, `"` and the back slash are escaped; wildcards (`*`) stay. */
function ruleText({ user, group, commands = [], runAs = ["root"], noPassword = false }: Rule): string {
  const list = commands.map((one) => one.replaceAll(/[,:=\\#"]/g, String.raw`\$&`)).join(", ");
  return `# Managed by kcore.\n${user ?? `%${group}`} ALL=(${runAs.join(", ")}) ${noPassword ? "NOPASSWD: " : ""}${list}\n`;
}

/**
 * Refuses a text that visudo does not accept, first by itself, then in a copy of the folder: two files may contradict each
 * other.
 */
function refuseInvalid(name: string, content: string): Sh {
  return sh`new=$K_TMP/sudoers
rm -rf "$new" && mkdir -p "$new/d" && cat <${blobOf(content)} >"$new/d/"${name} || exit 1
output=$(visudo -cf "$new/d/"${name} 2>&1) || refuse FILE_INVALID "sudo does not accept the text$K_NL$output"
grep -Eq '^[@#]includedir[[:blank:]]+/etc/sudoers\.d/?[[:blank:]]*$' /etc/sudoers ||
  refuse FILE_INVALID "/etc/sudoers does not read /etc/sudoers.d: it has no @includedir for that"
for file in /etc/sudoers.d/*; do [ "$file" = ${`${folder}/${name}`} ] || [ ! -f "$file" ] || cp -p "$file" "$new/d/" || exit 1; done
sed "s|^\([@#]includedir[[:blank:]]\{1,\}\)/etc/sudoers\.d/*[[:blank:]]*$|\1$new/d|" /etc/sudoers >"$new/all" || exit 1
output=$(visudo -cf "$new/all" 2>&1) || refuse FILE_INVALID "sudo does not accept the text together with what it reads besides$K_NL$output"
rm -rf "$new"`;
}
