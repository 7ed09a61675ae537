import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath } from "../step/fields.ts";
import { absentRefusals, stepOfData } from "../step/fragments/files.ts";

/** Folders whose removal would destroy the system; all other paths, also beneath these folders, are the operator's decision. */
const systemFolders = new Set(
  "/ /bin /boot /dev /etc /home /lib /lib32 /lib64 /nix /nix/store /nix/var /proc /root /run /sbin /srv /sys /usr /usr/bin /usr/lib /usr/sbin /var /var/lib".split(
    " ",
  ),
);

/**
 * ```yaml
 * file.absent: { path: /etc/motd }
 * ```
 * Removes a file, a symbolic link (never its target) or an empty folder; with `recurse: true` also a folder that is not
 * empty. Refuses system folders, mount points and folders with a mount point beneath.
 */
export const fileAbsent = defineModule({
  name: "file.absent",
  summary: "Keeps a path free: no file, link or folder.",
  alsoKnownAs: ["file", "file.tidied", "files.file", "rm", "delete", "remove"],
  args: z.strictObject({
    path: AbsolutePath.refine((path) => !systemFolders.has(path), "is a system folder; it is never removed").describe(
      "The path that must not exist.",
    ),
    recurse: z.boolean().default(false).describe("Remove a folder with everything in it."),
  }),
  refusals: [...absentRefusals],
  step: (given) => stepOfData({ kind: "absent", ...given }),
});
