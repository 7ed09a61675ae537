import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath } from "../step/fields.ts";
import { sh } from "../step/sh.ts";

/**
 * ```yaml
 * symlink.managed: { path: /etc/localtime, target: /usr/share/zoneinfo/UTC }
 * ```
 * A link with another target is replaced, in one rename. What is not a link is refused; `force: true` also replaces an
 * empty file or an empty folder, and never anything that holds something.
 */
export const symlinkManaged = defineModule({
  name: "symlink.managed",
  summary: "Keeps a symbolic link with its target.",
  alsoKnownAs: ["file", "file.symlink", "files.link", "link", "ln"],
  args: z.strictObject({
    path: AbsolutePath.describe("The link on the node."),
    target: z
      .string()
      .min(1)
      .max(4095)
      .refine((target) => !/[\0\n]/.test(target), "must not hold a NUL or a line break")
      .describe("What it points to, as it shall be written: absolute, or relative to the link's folder."),
    force: z.boolean().default(false).describe("Replace an empty file or an empty folder too."),
    makeDirs: z.boolean().default(false).describe("Make the folders above it when they are not there."),
  }),
  refusals: ["FILE_IN_THE_WAY", "FILE_NO_PARENT", "FILE_PARENT_UNSAFE", "NIXOS_MANAGED"],
  step: ({ path, target, force, makeDirs }) => ({
    ...(/\/s?bin\//.test(path) && { brings: true }),
    want: { kind: "symlink", target },
    data: { kind: "symlink", path, target, force, makeDirs },
    probe: sh`kind_of ${path}
fact kind "$kind"
[ "$kind" != symlink ] || fact target "$(readlink -- ${path})"`,
    guard: sh`guard_symlink ${path} ${force ? 1 : 0}`,
    keep: sh`keep_path ${path}`,
    foresee: sh`foresee_place ${path} - ${makeDirs ? 1 : 0} - -`,
    apply: sh`parent_of ${path} ${makeDirs ? 1 : 0}
put_link ${target} ${path}`,
    quiet: true,
  }),
});
