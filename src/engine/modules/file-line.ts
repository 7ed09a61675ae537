import { z } from "zod";
import { defineModule, type StepFacts } from "../step/define.ts";
import { ereFinds } from "../step/ere.ts";
import { AbsolutePath, TextOrSecret } from "../step/fields.ts";
import { reveal } from "../step/fragments/content.ts";
import {
  editFields,
  editRefusals,
  Ere,
  findPlace,
  hasAtMostOnePlace,
  placeFields,
  putLines,
  copyLines,
  refuseEdit,
  splice,
} from "../step/fragments/edit.ts";
import { effectsOfFile, foreseeFile } from "../step/fragments/files.ts";
import { Secret, secret } from "../step/secret.ts";
import { sh, type Sh } from "../step/sh.ts";

const args = z
  .strictObject({
    path: AbsolutePath.describe("The file on the node."),
    line: TextOrSecret.refine(
      (line) => /^[^\0\r\n]+$/.test(reveal(line)),
      "must be one line that is not empty; a text of several is file.block",
    )
      .optional()
      .describe("The line as it shall stand in the file."),
    match: Ere.optional().describe(
      "The last line that matches this POSIX ERE is the one to change; with state: absent, all that match go.",
    ),
    unique: z.boolean().default(false).describe("Take away the other lines that match, or are equal, too."),
    state: z.enum(["present", "absent"]).default("present").describe("Whether the line shall be there."),
    ...placeFields,
    ...editFields,
    sensitive: z.boolean().default(false).describe("Never show the line."),
  })
  .refine(({ line, state }) => state === "absent" || line !== undefined, "needs a line")
  .refine(
    ({ line, match, state }) => state === "present" || (line === undefined) !== (match === undefined),
    "give one of line and match with state: absent",
  )
  .refine(
    ({ create, makeDirs, unique, state, insertAfter, insertBefore }) =>
      state === "present" || !(create || makeDirs || unique || insertAfter !== undefined || insertBefore !== undefined),
    "create, makeDirs, unique, insertAfter and insertBefore are for state: present",
  )
  .refine(hasAtMostOnePlace, "give one of insertAfter and insertBefore")
  .refine(
    ({ line, match, state }) =>
      state === "absent" || line === undefined || match === undefined || ereFinds(match, reveal(line)) !== false,
    "the line does not match `match`: it would be written again in each run",
  );

type Args = z.output<typeof args>;

/**
 * ```yaml
 * file.line:
 *   path: /etc/ssh/sshd_config
 *   match: ^#?PermitRootLogin[[:blank:]]
 *   line: PermitRootLogin prohibit-password
 *   validate: sshd -t -f %s
 * ```
 * One line of a file that kcore does not own; all other lines stay. If several lines match, the last one is replaced (as
 * with Ansible's lineinfile); `unique: true` removes the others. If no line matches, the line is added. In a file whose
 * lines all end with CR LF, the line gets CR LF, too.
 */
export const fileLine = defineModule({
  name: "file.line",
  summary: "Keeps one line in a file, or lines away.",
  alsoKnownAs: ["lineinfile", "files.line", "file.replace", "sed"],
  args,
  refusals: [...editRefusals],
  step: (args, context) => {
    const isSecret = args.sensitive || context.sensitive === true || args.line instanceof Secret;
    const line = args.line === undefined ? undefined : isSecret ? secret(reveal(args.line)) : reveal(args.line);
    const given = { ...args, mode: args.mode ?? (isSecret ? "0600" : undefined) };
    const readState = sh`${copyLines(given.path)}
${findLines(given, line)}`;
    return {
      effects: effectsOfFile(given),
      want: wantOf(given, line),
      probe: sh`${readState}
${factsOf(given, line)}`,
      guard: sh`${copyLines(given.path)}
${refuseEdit(given.path, given.create)}
${given.match === undefined || line === undefined ? sh`` : refuseMismatch(given.match, line)}`,
      foresee: foreseeFile(given),
      keep: sh`keep_path ${given.path}`,
      apply: sh`${readState}
${given.state === "absent" ? dropAll : putLine(given, line ?? "")}
${putLines(given, splice)}`,
      ...(isSecret
        ? { sensitive: true }
        : {
            show: sh`${readState}
${given.unique || given.state === "absent" ? sh`printf '%s\n' "$found"` : sh`[ -z "$hits" ] || printf '%s\n' "\${found##*"$K_NL"}"`}`,
            shown: given.state === "absent" ? "" : `${reveal(line ?? "")}\n`,
          }),
      ...(given.validate === undefined && { quiet: true as const }),
    };
  },
});

function wantOf({ state }: Args, line: string | Secret | undefined): StepFacts {
  if (state === "absent") return { state };
  return { kind: "file", state, line: line instanceof Secret ? "as wanted" : (line ?? "") };
}

/** Sets `hits` to the numbers of the matching lines, each on a line of its own, and `found` to the matching lines. */
function findLines({ match }: Args, line: string | Secret | undefined): Sh {
  const find =
    match === undefined
      ? sh`printf '%s\n' ${line ?? ""} >"$K_TMP/text" && grep -nxF -f "$K_TMP/text" <"$K_TMP/lines"`
      : sh`grep -nE -e ${match} <"$K_TMP/lines"`;
  return sh`hits= found=
if [ "$kind" = file ]; then
  ${find} >"$K_TMP/hits"
  case $? in
    0) hits=$(sed 's/:.*//' <"$K_TMP/hits") && found=$(sed 's/^[0-9]*://' <"$K_TMP/hits"; echo .) || exit 1 ;;
    1) ;;
    *) exit 1 ;;
  esac
  found=\${found%"$K_NL".}
fi`;
}

function factsOf({ state, unique }: Args, line: string | Secret | undefined): Sh {
  const counts = unique || state === "absent" ? sh`"$found"` : sh`"\${found##*"$K_NL"}"`;
  const tell =
    line instanceof Secret
      ? sh`if [ ${counts} = ${line} ]; then fact line "as wanted"; else fact line different; fi`
      : sh`fact line ${counts}`;
  return sh`fact kind "$kind"
if [ -n "$hits" ]; then
  fact state present
  ${tell}
else
  case $kind in file | absent) fact state absent ;; *) fact state unknown ;; esac
fi`;
}

/** Refuses a line that `match` would not find in the next run. */
function refuseMismatch(match: string, line: string | Secret): Sh {
  return sh`printf '%s\n' ${line} | grep -qE -e ${match} ||
  refuse FILE_NOT_EDITABLE ${`the line for the file does not match ${match}: it would be written again in each run`}`;
}

const dropAll = sh`printf '%s\n' "$hits" >"$K_TMP/drop" && : >"$K_TMP/text" || exit 1
before=`;

/** Replaces the last matching line, else inserts a new one. */
function putLine({ unique, insertAfter, insertBefore }: Args, line: string | Secret): Sh {
  return sh`before=\${hits##*"$K_NL"}
printf '%s\n' ${unique ? sh`"$hits"` : sh`"$before"`} >"$K_TMP/drop" && printf '%s\n' ${line} >"$K_TMP/text" || exit 1
if [ -z "$hits" ]; then
  : >"$K_TMP/drop"
  ${findPlace({ insertAfter, insertBefore })}
fi`;
}
