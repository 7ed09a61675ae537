import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath } from "../step/fields.ts";
import { kindOf, notNixosEtc } from "../step/fragments/kind.ts";
import { mountsUnder } from "../step/fragments/mounts.ts";
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
  args: z.strictObject({
    path: AbsolutePath.refine((path) => !vital.has(path), "is a system folder; it is never removed").describe(
      "What must not be there.",
    ),
    recurse: z.boolean().default(false).describe("Remove a folder with everything in it."),
  }),
  step: ({ path, recurse }) => ({
    want: { kind: "absent" },
    quick: [{ kind: "absent", path }],
    probe: sh`${kindOf(path)}
fact kind "$kind"`,
    guard: sh`${kindOf(path)}
${notNixosEtc(path)}
[ "$kind" = directory ] || exit 0
mounts=$(${mountsUnder(path)}) || exit 1
[ -z "$mounts" ] || refuse FILE_MOUNTED ${`${path} holds a mount point`}"$K_NL$mounts"
${
  recurse
    ? sh``
    : sh`entries=$(ls -A ${path}) || exit 1
[ -z "$entries" ] || refuse FILE_NOT_EMPTY ${`${path} is a folder that is not empty (recurse: true removes it)`}`
}`,
    apply: sh`safe_parents ${path}
if [ -d ${path} ] && [ ! -L ${path} ]; then ${recurse ? sh`rm -rf -- ${path}` : sh`rmdir -- ${path}`}; else rm -f -- ${path}; fi`,
    quiet: true,
    refusals: ["FILE_MOUNTED", "FILE_NOT_EMPTY", "FILE_PARENT_UNSAFE", "NIXOS_MANAGED"],
  }),
});
