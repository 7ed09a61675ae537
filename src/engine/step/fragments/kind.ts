import { sh, type Sh } from "../sh.ts";

/** What stands at a path, in the variable `kind`: absent, symlink, file, directory or special. Links are not followed. */
export function kindOf(path: string): Sh {
  return sh`if [ -L ${path} ]; then kind=symlink
elif [ -f ${path} ]; then kind=file
elif [ -d ${path} ]; then kind=directory
elif [ -e ${path} ]; then kind=special
else kind=absent; fi`;
}

/**
 * Refuses paths under /etc that NixOS makes from its configuration (links into the store): a change there would be
 * lost or fail (design.md, section 7).
 */
export function notNixosEtc(path: string): Sh {
  if (!path.startsWith("/etc/")) return sh`:`;
  return sh`above=${path}
until [ -e "$above" ]; do above=$(dirname "$above"); done
case $(readlink -f "$above") in
  /nix/store/* | /etc/static/*)
    refuse NIXOS_MANAGED ${`${path} is made by NixOS from its configuration`} ;;
esac`;
}

/** Makes the folder above a path, or refuses when it is not there. */
export function parentOf(path: string, make: boolean): Sh {
  const parent = path.slice(0, path.lastIndexOf("/")) || "/";
  return make
    ? sh`mkdir -p -- ${parent} || exit 1`
    : sh`[ -d ${parent} ] || refuse FILE_NO_PARENT ${`the folder ${parent} does not exist: make it first, or makeDirs: true`}`;
}
