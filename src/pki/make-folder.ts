import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { KcoreError } from "#errors/problem.ts";

/**
 * Makes a folder, and those above it that are not there; one that is there is left as it is. For paths that an operator gives: Node's own way
 * (`recursive`) never ends where the system says of a new folder in one that is there that it is not, as /proc does.
 * @throws KcoreError USAGE when it cannot be made
 */
export async function makeFolder(path: string, { mode = 0o777 }: { readonly mode?: number } = {}): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== "ENOENT") return assertFolder(path, cause);
    const above = dirname(path);
    if (above === path) throw unmakeable(path, cause);
    await makeFolder(above, { mode });
    await mkdir(path, { mode }).catch((error: unknown) => assertFolder(path, error));
  }
}

/** Another process may have made it meanwhile, and on a disk that is read-only it may be there. */
async function assertFolder(path: string, cause: unknown): Promise<void> {
  if (!(await isFolder(path))) throw unmakeable(path, cause);
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

function unmakeable(path: string, cause: unknown): KcoreError {
  return new KcoreError(
    {
      code: "USAGE",
      message: `the folder ${path} cannot be made: ${(cause as Error).message}`,
      hint: "give one below a folder that you may write to",
    },
    { cause },
  );
}
