import { sh, type Sh } from "../sh.ts";

/** Selects lines of an fstab(5) or crypttab(5): by the second field (mount point), or by the first. */
export type FstabKey = { readonly mountPoint: string } | { readonly source: string };

/** Sets `fstab` to the selected lines, with single blanks, or to `absent`. */
export function readFstab(file: string, key: FstabKey): Sh {
  return sh`fstab=
if [ -f ${file} ]; then
  while read -r source place rest || [ -n "$source" ]; do
    case $source in '#'*) continue ;; esac
    [ ${"mountPoint" in key ? sh`"$place" != ${key.mountPoint}` : sh`"$source" != ${key.source}`} ] || fstab=$fstab\${fstab:+$K_NL}$(set -f && set -- "$source" "$place" $rest && printf %s "$*")
  done <${file}
fi
fstab=\${fstab:-absent}`;
}

/**
 * Replaces the first selected line by `line`, or appends `line` if no line is selected, and removes the other selected lines.
 * An empty `line` removes all selected lines.
 */
export function writeFstab(file: string, key: FstabKey, line: string): Sh {
  const field = "mountPoint" in key ? sh`"$2"` : sh`"$1"`;
  return sh`written=
[ -f ${file} ] || put_file /dev/null ${file} 0644 - - || exit 1
{
  while IFS= read -r whole || [ -n "$whole" ]; do
    case $whole in
      *[!\ \	]*) place=$(set -f && set -- $whole && case $1 in '#'*) ;; *) printf '%s\n' ${field} ;; esac) ;;
      *) place= ;;
    esac
    if [ "$place" != ${"mountPoint" in key ? key.mountPoint : key.source} ]; then
      printf '%s\n' "$whole"
    elif [ -z "$written" ]; then
      written=1
      [ -z ${line} ] || printf '%s\n' ${line}
    fi
  done <${file}
  if [ -z "$written" ] && [ -n ${line} ]; then printf '%s\n' ${line}; fi
} >"$K_TMP/fstab" && put_file "$K_TMP/fstab" ${file} - - - || exit 1`;
}

/** Escapes characters that would end a field, as fstab(5) and the kernel do. */
export function escapeBlanks(text: string): string {
  return text.replaceAll(/[ \t\\#]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);
}
