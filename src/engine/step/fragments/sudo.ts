import type { Blob } from "../blob.ts";
import { sh, type Sh } from "../sh.ts";

/**
 * Refuses if this run's login user, who became root by sudo (SUDO_USER, sudo(8)), could run no root shell after the
 * change. The change is the new file of /etc/sudoers.d, or its removal. sudo itself checks a copy that is mounted over
 * the folder, for this process alone. This check ignores whether sudo would ask for a password.
 */
export function refuseSudoLockout(name: string, blob: Blob | undefined): Sh {
  return sh`if [ -n "\${SUDO_USER-}" ] && have sudo && unshare -m true 2>/dev/null && sudo -n -l -U "$SUDO_USER" /bin/sh >/dev/null 2>&1; then
  new=$K_TMP/sudoers.new
  rm -rf "$new" && mkdir "$new" || exit 1
  for file in /etc/sudoers.d/*; do [ "$file" = ${`/etc/sudoers.d/${name}`} ] || [ ! -f "$file" ] || cp -p "$file" "$new/" || exit 1; done
  ${blob === undefined ? sh`` : sh`cat <${blob} >"$new/"${name} && chmod 0440 "$new/"${name} || exit 1`}
  # If the copy cannot be mounted, nothing is refused.
  unshare -m sh -c 'mount --make-rprivate / && mount --bind "$1" /etc/sudoers.d || exit 0; sudo -n -l -U "$2" /bin/sh' sudo "$new" "$SUDO_USER" >/dev/null 2>&1 ||
    refuse SUDO_LOCKS_OUT "$SUDO_USER, by whose sudo this run came in, could do nothing as root any more"
  rm -rf "$new"
fi`;
}
