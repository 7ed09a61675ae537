import type { Blob } from "../blob.ts";
import { sh, type Sh } from "../sh.ts";

function unpackerOf(name: string): { command: string; package: string } | undefined {
  if (name.endsWith(".xz") || name.endsWith(".txz")) return { command: "xz", package: "xz-utils" };
  return /\.t?gz$/.test(name) ? { command: "gzip", package: "gzip" } : undefined;
}

/**
 * Installs Nix from a release tarball (store/ and .reginfo), as upstream's install-multi-user and
 * install-systemd-multi-user do, without channels, questions and edits of shell start files. After an interruption at any
 * point the text can run again.
 */
export function installNixTarball({ name, blob, buildUsers }: { name: string; blob: Blob; buildUsers: number }): Sh {
  const unpacker = unpackerOf(name);
  return sh`${
    unpacker
      ? sh`have ${unpacker.command} || refuse TOOL_MISSING ${`${unpacker.command} is not on this node; package ${unpacker.package} has it`}
unpack() { ${unpacker.command} -dc <${blob}; }`
      : sh`unpack() { cat <${blob}; }`
  }
have useradd || refuse TOOL_MISSING "useradd is not on this node; package passwd has it"
old=/nix/.kcore-unpack
away() { [ ! -e "$old" ] || { chmod -R u+w "$old" && rm -rf "$old"; }; }
away
mkdir -p "$old" && unpack | tar -x -C "$old" -f - && cd "$old"/*/ || exit 1
for nix in store/*-nix-[0-9]*; do [ ! -x "$nix/bin/nix-store" ] || break; done
[ -x "$nix/bin/nix-store" ] && [ -f .reginfo ] ||
  refuse NIX_INSTALL_FAILED ${`${name} is not laid out as a release of Nix (store/…-nix-…/bin, .reginfo)`}
nix=/nix/$nix cacert=
for path in store/*-nss-cacert-*; do [ ! -d "$path" ] || cacert=/nix/$path; done
grep -q '^nixbld:' /etc/group || groupadd -g 30000 --system nixbld || exit 1
user=1
while [ $user -le ${buildUsers} ]; do
  id nixbld$user >/dev/null 2>&1 ||
    useradd --home-dir /var/empty --no-create-home --comment "Nix build user $user" --gid nixbld --groups nixbld \
      --no-user-group --system --shell /usr/sbin/nologin --uid $((30000 + user)) --password '!' nixbld$user || exit 1
  user=$((user + 1))
done
for path in /nix /nix/var /nix/var/log /nix/var/log/nix /nix/var/log/nix/drvs /nix/var/nix /nix/var/nix/db \
  /nix/var/nix/gcroots /nix/var/nix/gcroots/per-user /nix/var/nix/profiles /nix/var/nix/profiles/per-user \
  /nix/var/nix/temproots /nix/var/nix/userpool /nix/var/nix/daemon-socket /etc/nix; do
  mkdir -p "$path" && chmod 755 "$path" || exit 1
done
mkdir -p /nix/store && chgrp nixbld /nix/store && chmod 1775 /nix/store || exit 1
chown -R 0:0 store && find store -exec touch -h -d @1 {} + 2>/dev/null
for path in store/*; do
  [ ! -e "/nix/$path" ] || continue
  chmod -R a-w "$path" && mv -T "$path" "/nix/$path" || exit 1
done
"$nix/bin/nix-store" --load-db <.reginfo || exit 1
cd / && away || exit 1
[ -e /etc/nix/nix.conf ] || printf 'build-users-group = nixbld\n' >/etc/nix/nix.conf
profile=/nix/var/nix/profiles/default
HOME=/root "$nix/bin/nix-env" --option substituters '' --option sandbox false -p "$profile" -i "$nix" $cacert || exit 1
for unit in nix-daemon.service nix-daemon.socket; do
  [ -e "/etc/systemd/system/$unit" ] || systemctl link -q "$profile/lib/systemd/system/$unit" || exit 1
done
[ ! -f "$profile/lib/tmpfiles.d/nix-daemon.conf" ] || cp "$profile/lib/tmpfiles.d/nix-daemon.conf" /etc/tmpfiles.d/
[ ! -f "$profile/etc/profile.d/nix-daemon.sh" ] || ln -sfn "$profile/etc/profile.d/nix-daemon.sh" /etc/profile.d/nix.sh
# Sessions that read no profile, such as nix copy over ssh, must find it too.
for path in "$profile"/bin/nix*; do
  link=/usr/local/bin/\${path##*/}
  if [ ! -e "$link" ] || [ -L "$link" ]; then ln -sfn "$path" "$link"; fi
done
systemctl daemon-reload && "$nix/bin/nix-store" --verify --check-contents || exit 1`;
}
