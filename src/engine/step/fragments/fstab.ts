import { sh, type Sh } from "../sh.ts";

/** Sets `fstab` to the lines of a mount point in an fstab(5), blanks made single, or to `absent`. */
export function readFstab(file: string, path: string): Sh {
  return sh`fstab=
if [ -f ${file} ]; then
  while read -r source place rest || [ -n "$source" ]; do
    case $source in '#'*) continue ;; esac
    [ "$place" != ${path} ] || fstab=$fstab\${fstab:+$K_NL}$(set -f && set -- "$source" "$place" $rest && echo "$*")
  done <${file}
fi
fstab=\${fstab:-absent}`;
}

/**
 * Puts `line` in the place of the mount point's first line in an fstab (at the end if it has none) and drops its other
 * lines; an empty `line` drops them all. Every other line stays as it is.
 */
export function writeFstab(file: string, path: string, line: string): Sh {
  return sh`written=
[ -f ${file} ] || put_file /dev/null ${file} 0644 - - || exit 1
{
  while IFS= read -r whole || [ -n "$whole" ]; do
    case $whole in
      *[!\ \	]*) place=$(set -f && set -- $whole && case $1 in '#'*) ;; *) printf '%s\n' "$2" ;; esac) ;;
      *) place= ;;
    esac
    if [ "$place" != ${path} ]; then
      printf '%s\n' "$whole"
    elif [ -z "$written" ]; then
      written=1
      [ -z ${line} ] || printf '%s\n' ${line}
    fi
  done <${file}
  if [ -z "$written" ] && [ -n ${line} ]; then printf '%s\n' ${line}; fi
} >"$K_TMP/fstab" && put_file "$K_TMP/fstab" ${file} - - - || exit 1`;
}
