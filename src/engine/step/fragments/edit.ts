import { z } from "zod";
import type { FileOwnership } from "../define.ts";
import { FileMode, UserName } from "../fields.ts";
import { sh, type Sh } from "../sh.ts";
import type { ShellText } from "../shell-text.ts";
import { fileRefusals } from "./files.ts";
import { keepingBackup, Validate, validation } from "./file-validation.ts";

/** A POSIX extended regular expression for one line, as `grep -E` on the node reads it. */
export const Ere = z
  .string()
  .min(1, "must not be empty: it would match every line")
  .regex(/^[^\0\r\n]*$/, "must be one line");

/** Arguments, besides the path, of a step that manages only a part of a file. */
export const editFields = {
  create: z.boolean().default(false).describe("Make the file when it is not there."),
  makeDirs: z.boolean().default(false).describe("With create, make the folders above the file, too."),
  mode: FileMode.optional().describe("Mode of a file that is made; else 0644, or 0600 when the text is secret."),
  owner: UserName.optional().describe("Owner of a file that is made; else root."),
  group: UserName.optional().describe("Group of a file that is made; else root."),
  backup: z.boolean().default(false).describe("Keep the old file as PATH.kcore-TIME."),
  validate: Validate,
} as const;

export const placeFields = {
  insertAfter: Ere.optional().describe(
    "A new text goes behind the last line that matches this ERE; EOF, or none matches: at the end.",
  ),
  insertBefore: Ere.optional().describe(
    "A new text goes before the last line that matches this ERE; BOF: at the beginning; none matches: at the end.",
  ),
} as const;

/** The place of new text, as {@link placeFields} give it. */
export interface InsertPlace {
  readonly insertAfter?: string | undefined;
  readonly insertBefore?: string | undefined;
}

/** Whether the arguments give at most one place. */
export function hasAtMostOnePlace({ insertAfter, insertBefore }: InsertPlace): boolean {
  return insertAfter === undefined || insertBefore === undefined;
}

/** A file to edit; mode, owner and group are for a file that the step makes. */
export interface Edit extends FileOwnership {
  readonly path: string;
  readonly create: boolean;
  readonly makeDirs: boolean;
  readonly backup: boolean;
  readonly validate?: ShellText | undefined;
}

/** The refusals of every step that edits a file. */
export const editRefusals = ["FILE_INVALID", "FILE_NOT_EDITABLE", ...fileRefusals] as const;

/**
 * Copies the lines of a file to "$K_TMP/lines", which is empty if there is no such file. Sets `kind` to the result of
 * kind_of, or to binary for a file with NULs. Sets `crlf` to 1 if all lines end with CR LF: then the copy has no CRs, so
 * that patterns and lines match as in other files.
 */
export function copyLines(path: string | Sh): Sh {
  return sh`kind_of ${path}
crlf=
: >"$K_TMP/lines" || exit 1
${typeof path === "string" && !path.startsWith("/etc/") ? sh`` : readNixosTarget(path)}
if [ "$kind" = file ] && [ ! -L ${path} ]; then
  open_file ${path} || exit 1
  tr -d '\000' <&9 >"$K_TMP/lines" && sizes=$(stat -L -c %s /proc/self/fd/9 "$K_TMP/lines" 9<&9) || exit 1
  [ "\${sizes%"$K_NL"*}" = "\${sizes#*"$K_NL"}" ] || kind=binary
  first=
  ! IFS= read -r first <"$K_TMP/lines" || case $first in
    *${"\r"}) grep -qv ${"\r$"} <"$K_TMP/lines" || { crlf=1 && sed ${"s/\r$//"} <"$K_TMP/lines" >"$K_TMP/unix" && mv "$K_TMP/unix" "$K_TMP/lines"; } || exit 1 ;;
  esac
fi`;
}

/** NixOS links files of its configuration to its read-only store: the probe reads the target, the guard refuses changes. */
function readNixosTarget(path: string | Sh): Sh {
  return sh`if [ "$kind" = symlink ]; then
  case ${path}:$(readlink -f ${path}) in /etc/*:/nix/store/*) cat <${path} >"$K_TMP/lines" && kind=file || exit 1 ;; esac
fi`;
}

/** After {@link copyLines}: refuses a file that cannot be edited, and a missing one unless it may be made. */
export function refuseEdit(path: string | Sh, create: boolean): Sh {
  return sh`found=$kind
guard_file ${path}
case $found in
  symlink) refuse FILE_IN_THE_WAY ${path}" is a symbolic link to $(readlink -- ${path}): edit the file it leads to" ;;
  binary) refuse FILE_NOT_EDITABLE ${path}" holds NUL bytes: it is no text" ;;
  absent) ${create ? sh`:` : sh`refuse FILE_NOT_EDITABLE ${path}" is not there (create: true makes it)"`} ;;
esac`;
}

/**
 * Replaces the file by the output of `filter`, which edits "$K_TMP/lines". Mode and owner stay. If all lines ended with CR
 * LF, the new ones do, too; a last line without a line end gets one.
 */
export function putLines(edit: Edit, filter: Sh): Sh {
  const { path, makeDirs, mode, owner, group, backup, validate } = edit;
  return sh`{
  ${filter}
} >"$K_TMP/edited" || exit 1
[ -z "$crlf" ] || { sed ${"s/$/\r/"} <"$K_TMP/edited" >"$K_TMP/unix" && mv "$K_TMP/unix" "$K_TMP/edited"; } || exit 1
${validation(path, validate, sh`"$K_TMP/edited"`)}
set -- - - -
if [ "$kind" = absent ]; then
  set -- ${mode ?? "-"} ${owner ?? "-"} ${group ?? "-"}
  parent_of ${path} ${makeDirs ? 1 : 0} ${owner ?? ""}
fi
${backup ? keepingBackup(path, "-") : sh``}
put_file "$K_TMP/edited" ${path} "$@"`;
}

/**
 * Prints "$K_TMP/lines" without the line numbers in "$K_TMP/drop". Inserts "$K_TMP/text" before line number `$before`, or
 * at the end if there is no such line.
 */
export const splice = sh`tmp=$K_TMP before=$before awk '
    function put(line) { while ((getline line < (ENVIRON["tmp"] "/text")) > 0) print line; done = 1 }
    BEGIN { while ((getline number < (ENVIRON["tmp"] "/drop")) > 0) drop[number + 0] }
    NR == ENVIRON["before"] + 0 { put() }
    !(NR in drop)
    END { if (!done) put() }' <"$K_TMP/lines"`;

/** Sets `before` for {@link splice}: the line number before which new text goes; empty for the end. */
export function findPlace({ insertAfter, insertBefore }: InsertPlace): Sh {
  if (insertBefore === "BOF") return sh`before=1`;
  const pattern = insertBefore ?? (insertAfter === "EOF" ? undefined : insertAfter);
  if (pattern === undefined) return sh`before=`;
  return sh`grep -nE -e ${pattern} <"$K_TMP/lines" >"$K_TMP/hits"
[ $? -le 1 ] || exit 1
before=$(sed -n '$s/:.*//p' <"$K_TMP/hits") || exit 1
${insertBefore === undefined ? sh`[ -z "$before" ] || before=$((before + 1))` : sh``}`;
}
