/**
 * A shell that sees this machine with a /nix/store of its own and these commands done, in a mount namespace; `shell` is what runs there. This
 * machine may have no /nix, and gets none: its root is covered by an overlay.
 */
export function withOwnStore(shell: string, ...commands: readonly string[]): string {
  const cover = [
    "mount -t tmpfs none /mnt",
    "mkdir /mnt/upper /mnt/work /mnt/root",
    "mount -t overlay none -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root",
    "for place in proc sys dev tmp; do mount --rbind /$place /mnt/root/$place || exit; done",
    "mkdir -p /mnt/root/nix",
    "mount -t tmpfs none /mnt/root/nix",
    "mkdir /mnt/root/nix/store",
  ];
  return `unshare -m sh -c '${[...cover, ...commands].join(" && ")} && exec chroot /mnt/root "$0" "$@"' ${shell}`;
}
