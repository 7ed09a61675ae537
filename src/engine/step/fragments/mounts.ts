import { sh, type Sh } from "../sh.ts";

/** Prints the mount points at or beneath a folder, one a line, as the kernel knows them (proc(5), mountinfo). */
export function mountsUnder(path: string): Sh {
  return sh`real=$(cd -P ${path} && pwd -P) || exit 1
while read -r _ _ _ _ point _; do
  # The kernel writes blanks and back slashes as \040 and the like.
  case $point in *\\*) point=$(printf %b "$point") ;; esac
  case $point/ in "$real"/*) printf '%s\n' "$point" ;; esac
done </proc/self/mountinfo`;
}
