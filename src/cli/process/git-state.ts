import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Which commit a project is at, and whether files differ from it; nothing where it is not under git. */
export async function gitState(project: string): Promise<{ readonly revision?: string; readonly dirty?: boolean }> {
  // Neither hooks nor monitors of the repository are run for a look at it.
  const ask = async (...words: readonly string[]) =>
    (
      await promisify(execFile)("git", ["-C", project, "-c", "core.fsmonitor=false", ...words], {
        timeout: 5000,
        maxBuffer: 1 << 26,
      })
    ).stdout.trim();
  const [revision, changes] = await Promise.all([
    ask("rev-parse", "HEAD").catch(() => undefined),
    ask("--no-optional-locks", "status", "--porcelain", "--untracked-files=normal", "--", ".").catch(() => undefined),
  ]);
  return {
    ...(revision === undefined ? {} : { revision }),
    ...(changes === undefined ? {} : { dirty: changes !== "" }),
  };
}
