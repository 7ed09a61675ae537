import { KcoreError } from "#errors/problem.ts";
import { lockFolder } from "#base/lock-folder.ts";

/**
 * Locks a folder for this controller, until the returned function is called or the process dies in any way.
 * @throws KcoreError STORE_LOCKED
 */
export async function holdFolder(folder: string): Promise<() => void> {
  const unlock = await lockFolder(folder);
  if (unlock) return unlock;
  throw new KcoreError({
    code: "STORE_LOCKED",
    message: `another controller uses ${folder}`,
    hint: "systemctl status kcore-controller",
  });
}
