import { join } from "node:path";
import { makeFolder } from "#base/folder.ts";
import { lockFolder } from "#base/lock-folder.ts";
import { poll } from "#base/wait.ts";
import { KcoreError, exitCodes } from "#errors/problem.ts";

/**
 * Does `work` while holding the lock `name` of the folder `home` (labs and packs have locks). Waits for the lock up to `seconds`,
 * then throws `LAB_BUSY`. `waiting` is called if the wait takes more than a second.
 */
export async function withLock<T>(
  home: string,
  name: string,
  seconds: number,
  work: () => Promise<T>,
  waiting: () => void = () => {},
): Promise<T> {
  const folder = join(home, "locks", `${name}.d`);
  await makeFolder(folder, { mode: 0o700 });
  const timer = setTimeout(waiting, 1000);
  const unlock = await poll(() => lockFolder(folder), { everyMs: 50, limitMs: seconds * 1000 });
  clearTimeout(timer);
  if (!unlock)
    throw new KcoreError(
      { code: "LAB_BUSY", message: `another lab command holds ${folder}`, hint: "wait for it to end, then try again" },
      { exitCode: exitCodes.failed },
    );
  try {
    return await work();
  } finally {
    unlock();
  }
}
