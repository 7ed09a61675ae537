# The environment of the programs that need no runner (POSIX sh; dash, bash, BusyBox, mksh). They leave nothing on the
# node and need no room.

export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/nix/var/nix/profiles/default/bin:/run/wrappers/bin:/run/current-system/sw/bin
unset CDPATH ENV IFS
