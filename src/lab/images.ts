/** The images of nodes; each folder is complete, never changed, and named after its inputs. */
export interface Images {
  readonly debian: string;
  /** Goes over the Debian tree: the helpers that make the lab's disks behave. */
  readonly layer: string;
  readonly busybox: string;
  /** The layer of a Debian node with Nix, over the Debian tree; empty where no node was to have Nix. */
  readonly nix: string;
  /** A flat apt repository. */
  readonly packages: string;
  /** Another one, of packages that this lab was asked for by name; empty where there are none. */
  readonly more: string;
  /** Kernel, initrd and root file system of virtual machines; empty where none were asked for, as is the next one. */
  readonly vm: string;
  /** A virtual machine that has booted, saved with its memory. */
  readonly golden: string;
  /** The further files of a virtual machine with ZFS; empty where none was asked for. */
  readonly zfs: string;
}
