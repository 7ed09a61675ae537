import { z } from "zod";
import type { Blob } from "../blob.ts";
import { sh, type Sh } from "../sh.ts";
import { shellText, type ShellText } from "../shell-text.ts";

/** The argument `validate` of modules that write files. */
export const Validate = shellText(
  z.string().refine((command) => command.includes("%s"), "must hold %s, the new file's path"),
)
  .optional()
  .describe(
    "A shell command that must accept the new file, %s (without quotes), before the file replaces the old one.",
  );

/**
 * Refuses a new file that the command does not accept. The command gets the file under its final name, in a private
 * folder, because some validators check names.
 */
export function validation(path: string, command: ShellText | undefined, made: Blob | Sh): Sh {
  if (command === undefined) return sh``;
  const name = path.slice(path.lastIndexOf("/") + 1);
  return sh`mkdir -p "$K_TMP/new" && cat <${made} >"$K_TMP/new/"${name} || exit 1
output=$(sh -c ${command.replaceAll("%s", '"$1"')} validate "$K_TMP/new/"${name} 2>&1 </dev/null) ||
  refuse FILE_INVALID ${`the new ${path} does not pass: ${command}`}"$K_NL$output"`;
}

/** Keeps a copy of the file before it is replaced, and reports its name. */
export function keepingBackup(path: string, owner: string): Sh {
  return sh`if [ -f ${path} ]; then backup=$(backup_file ${path} ${owner}) && note "kept the old file as $backup" || exit 1; fi`;
}
