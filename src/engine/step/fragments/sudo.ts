import type { Blob } from "../blob.ts";
import { sh, type Sh } from "../sh.ts";

/**
 * Refuses where the user by whose sudo this run came in (SUDO_USER, sudo(8)) could run no shell as root any more with this text, or none, in that
 * file of /etc/sudoers.d: sudo itself says so, of a copy that takes the folder's place for it alone. Whether it would ask for a password it does not say.
 */
export function refuseSudoLockout(name: string, blob: Blob | undefined): Sh {
  return sh`if [ -n "\${SUDO_USER-}" ] && have sudo && unshare -m true 2>/dev/null && sudo -n -l -U "$SUDO_USER" /bin/sh >/dev/null 2>&1; then
  new=$K_TMP/sudoers.new
  rm -rf "$new" && mkdir "$new" || exit 1
  for file in /etc/sudoers.d/*; do [ "$file" = ${`/etc/sudoers.d/${name}`} ] || [ ! -f "$file" ] || cp -p "$file" "$new/" || exit 1; done
  ${blob === undefined ? sh`` : sh`cat <${blob} >"$new/"${name} && chmod 0440 "$new/"${name} || exit 1`}
  # Where that cannot be tried it says nothing.
  unshare -m sh -c 'mount --make-rprivate / && mount --bind "$1" /etc/sudoers.d || exit 0; sudo -n -l -U "$2" /bin/sh' sudo "$new" "$SUDO_USER" >/dev/null 2>&1 ||
    refuse SUDO_LOCKS_OUT "$SUDO_USER, by whose sudo this run came in, could do nothing as root any more"
  rm -rf "$new"
fi`;
}
