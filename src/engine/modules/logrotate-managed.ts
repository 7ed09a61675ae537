import { z } from "zod";
import { blobOf } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { EtcName } from "../step/fragments/cron.ts";
import { absentRefusals, stepOfData } from "../step/fragments/files.ts";
import { sh, type Sh } from "../step/sh.ts";
import { shellText, type ShellText } from "../step/shell-text.ts";
import { stepOfCheckedFile } from "./file-managed.ts";

const Path = z
  .string()
  .regex(/^\/[^\0\n"'{}\\]*$/, "must be an absolute path without quotes, braces and back slashes; * stands for more");

const scripts = /^\s*(endscript|(pre|post)rotate|(first|last)action|preremove)\b/m;

const Directive = z
  .string()
  .regex(/^[a-z][^\0\n{}]*$/, "must be one directive such as “rotate 7”")
  .refine((text) => !scripts.test(text), "must not begin or end a script: postrotate is an argument");

const Script = shellText(z.string().refine((text) => !scripts.test(text), "must hold no directive of a script"));

/**
 * ```yaml
 * logrotate.managed:
 *   name: shop
 *   paths: [/var/log/shop/*.log]
 *   options: [weekly, rotate 8, compress, delaycompress, missingok, notifempty]
 *   postrotate: systemctl kill -s HUP shop.service
 * ```
 * A file of its own, /etc/logrotate.d/NAME (logrotate(8)). logrotate itself checks the text before the file is written; a
 * log that does not exist yet is no error.
 */
export const logrotateManaged = defineModule({
  name: "logrotate.managed",
  summary: "Keeps how logs are rotated in a file of its own.",
  alsoKnownAs: ["logrotate", "logrotate.set"],
  args: z
    .strictObject({
      name: EtcName.describe("The file in /etc/logrotate.d."),
      paths: z.array(Path).min(1).optional().describe("The logs; * stands for more."),
      options: z.array(Directive).default([]).describe("Directives of logrotate, a line each."),
      postrotate: Script.optional().describe("A script for sh, after a rotation."),
      content: z.string().optional().describe("The file's text, instead of paths, options and postrotate."),
      state: z.enum(["present", "absent"]).default("present").describe("Whether the file shall be there."),
    })
    .refine(
      ({ paths, content, state }) =>
        [paths, content].filter((one) => one !== undefined).length === (state === "present" ? 1 : 0),
      "give one of paths and content (neither with state: absent)",
    )
    .refine(
      ({ paths, options, postrotate }) => paths !== undefined || (options.length === 0 && postrotate === undefined),
      "options and postrotate are for paths",
    ),
  refusals: ["FILE_INVALID", "FILE_IN_THE_WAY", ...absentRefusals],
  step: ({ name, paths = [], options, postrotate, state, ...given }, context) => {
    const path = `/etc/logrotate.d/${name}`;
    if (state === "absent") return stepOfData({ kind: "absent", path, recurse: false });
    const content = given.content ?? fileText(paths, options, postrotate);
    const step = stepOfCheckedFile({ path, content, mode: "0644" }, refuseInvalid(name, content), context);
    return { ...step, tools: [{ command: "logrotate", package: "logrotate" }] };
  },
});

function fileText(paths: readonly string[], options: readonly string[], postrotate: ShellText | undefined): string {
  const names = paths.map((path) => (/\s/.test(path) ? `"${path}"` : path));
  const script =
    postrotate === undefined
      ? []
      : [
          "postrotate",
          ...postrotate
            .trimEnd()
            .split("\n")
            .map((line) => (line === "" ? "" : `    ${line}`)),
          "endscript",
        ];
  const lines = [...options, ...script].map((line) => (line === "" ? "\n" : `    ${line}\n`));
  return `# Managed by kcore.\n${names.join("\n")} {\n${lines.join("")}}\n`;
}

/**
 * Refuses a text that logrotate does not accept in its debug mode, which rotates nothing. Only errors that name the file
 * concern its text; the others are about missing logs.
 */
function refuseInvalid(name: string, content: string): Sh {
  return sh`mkdir -p "$K_TMP/logrotate" && new=$K_TMP/logrotate/${name} && cat <${blobOf(content)} >"$new" || exit 1
logrotate -d "$new" >"$K_TMP/output" 2>&1
output=$(grep -F "error: $new:" "$K_TMP/output") && refuse FILE_INVALID "logrotate does not accept the text$K_NL$output"
rm -f "$new"`;
}
