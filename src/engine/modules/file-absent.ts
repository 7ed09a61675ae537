import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath } from "../step/fields.ts";
import { sh } from "../step/sh.ts";

/** Folders whose removal ends the system; what lies beneath them is the operator's business. */
const vital = new Set(
  "/ /bin /boot /dev /etc /home /lib /lib32 /lib64 /nix /nix/store /nix/var /proc /root /run /sbin /srv /sys /usr /usr/bin /usr/lib /usr/sbin /var /var/lib".split(
    " ",
  ),
);

/**
 * ```yaml
 * file.absent: { path: /etc/motd }
 * ```
 * Removes a file, a symbolic link (never what it points to) or an empty folder; a folder that holds anything only with
 * `recurse: true`. Refuses system folders, mount points and folders with something mounted beneath.
 */
export const fileAbsent = defineModule({
  name: "file.absent",
  summary: "Keeps a path free: no file, link or folder.",
  alsoKnownAs: ["file", "file.tidied", "files.file", "rm", "delete", "remove"],
  args: z.strictObject({
    path: AbsolutePath.refine((path) => !vital.has(path), "is a system folder; it is never removed").describe(
      "What must not be there.",
    ),
    recurse: z.boolean().default(false).describe("Remove a folder with everything in it."),
  }),
  refusals: ["FILE_MOUNTED", "FILE_NOT_EMPTY", "FILE_NO_PARENT", "FILE_PARENT_UNSAFE", "NIXOS_MANAGED"],
  step: ({ path, recurse }) => ({
    want: { kind: "absent" },
    data: { kind: "absent", path, recurse },
    probe: sh`kind_of ${path}
fact kind "$kind"`,
    guard: sh`guard_absent ${path} ${recurse ? 1 : 0}`,
    ...(!recurse && { keep: sh`keep_path ${path}` }),
    foresee: sh`foresee_place ${path} - 0 - -`,
    apply: sh`remove_path ${path} ${recurse ? 1 : 0}`,
    quiet: true,
  }),
});
