import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Runs `work` in a project of these files (path → text), and removes the folder afterwards. */
export function inProject<T>(files: Readonly<Record<string, string>>, work: (project: string) => T): T {
  const project = mkdtempSync(join(tmpdir(), "kcore-project-"));
  const remove = (): void => {
    rmSync(project, { recursive: true, force: true });
  };
  let result: T;
  try {
    for (const folder of ["roster", "orchestrate"]) mkdirSync(join(project, folder));
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(project, name)), { recursive: true });
      writeFileSync(join(project, name), text);
    }
    result = work(project);
  } catch (error) {
    remove();
    throw error;
  }
  if (result instanceof Promise) return result.finally(remove) as T;
  remove();
  return result;
}
