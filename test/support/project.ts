import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeTempDir, type TempDir } from "./temp-dir.ts";

/** A project folder with these files; `roster/`, `orchestrate/` and `states/` always exist. */
export async function makeProject(files: Readonly<Record<string, string>>): Promise<TempDir> {
  const project = await makeTempDir("project");
  for (const folder of ["roster", "orchestrate", "states"]) await mkdir(join(project.path, folder));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(project.path, name)), { recursive: true });
    await writeFile(join(project.path, name), text);
  }
  return project;
}
