import { realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, normalize, sep } from "node:path";
import { z } from "zod";
import { ifThere } from "#base/file.ts";
import type { ActionContext } from "#engine/orchestrate/action.ts";
import { assertTrusted } from "#engine/project/project.ts";
import { KcoreError } from "#errors/problem.ts";

/** A path relative to the project that stays inside it. */
export const InProject = z
  .string()
  .refine((path) => !isAbsolute(path) && !normalize(path).startsWith(".."), "must stay inside the project");

/**
 * The absolute path of a file to write. Refuses an existing parent folder that leads out of the project or, with `trust`, is not trusted (S-20).
 * @throws KcoreError FILE_IN_THE_WAY, FILE_PARENT_UNSAFE, PROJECT_NOT_TRUSTED
 */
export async function safeProjectPath(
  path: string,
  { project, trust }: Pick<ActionContext, "project" | "trust">,
): Promise<string> {
  const file = join(project, path);
  for (let parent = dirname(normalize(path)); parent !== "."; parent = dirname(parent)) {
    const folder = join(project, parent);
    const stats = await ifThere(stat(folder));
    if (stats === undefined) continue;
    if (!stats.isDirectory())
      throw new KcoreError({
        code: "FILE_IN_THE_WAY",
        message: `${folder} is no folder, so ${file} cannot be in it`,
        hint: "name another path, or move it away",
      });
    if (!(await realpath(folder)).startsWith((await realpath(project)) + sep))
      throw new KcoreError({
        code: "FILE_PARENT_UNSAFE",
        message: `${folder} leads out of the project`,
        hint: "name a path in the project, without a link out of it",
      });
    if (trust) assertTrusted(folder, stats, trust);
  }
  return file;
}
