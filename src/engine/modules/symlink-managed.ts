import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath } from "../step/fields.ts";
import { fileRefusals, stepOfData } from "../step/fragments/files.ts";

/**
 * ```yaml
 * symlink.managed: { path: /etc/localtime, target: /usr/share/zoneinfo/UTC }
 * ```
 * A link with another target is replaced, in one rename. A file or folder is refused; with `force: true` an empty file
 * or an empty folder is replaced, too.
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
      .describe("The target, as it shall be written: absolute, or relative to the link's folder."),
    force: z.boolean().default(false).describe("Replace an empty file or an empty folder too."),
    makeDirs: z.boolean().default(false).describe("Make the missing folders above path."),
  }),
  refusals: [...fileRefusals],
  step: (given) => ({
    ...stepOfData({ kind: "symlink", ...given }),
    ...(/\/s?bin\//.test(given.path) && { brings: true }),
  }),
});
