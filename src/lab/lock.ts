import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { KcoreError, exitCodes } from "#errors/problem.ts";
import { commandEnvironment } from "./run-command.ts";

/**
 * Does `work` while holding the lock `name` of the labs in `home`; waits for it up to `seconds`, then throws `LAB_BUSY`;
 * `waiting` is called once if that takes more than a second.
 *
 * The lock is held by a flock(1) that lives as long as a pipe to this process: it is free again when this process ends, however
 * it ends, and no node that is started meanwhile can inherit it.
 */
export async function withLock<T>(
  home: string,
  name: string,
  seconds: number,
  work: () => Promise<T>,
  waiting: () => void = () => {},
): Promise<T> {
  await mkdir(join(home, "locks"), { recursive: true, mode: 0o700 });
  const file = join(home, "locks", name);
  const holder = spawn("flock", ["-w", String(seconds), file, "sh", "-c", "echo held; exec cat >/dev/null"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: commandEnvironment(),
  });
  holder.stdin.on("error", () => {});
  const ended = once(holder, "close");
  const patience = setTimeout(waiting, 1000);
  const held = await Promise.race([once(holder.stdout, "data").then(() => true), ended.then(() => false)]);
  clearTimeout(patience);
  if (!held) {
    throw new KcoreError(
      { code: "LAB_BUSY", message: `another lab command holds ${file}`, hint: "wait for it to end, then try again" },
      { exitCode: exitCodes.failed },
    );
  }
  try {
    return await work();
  } finally {
    holder.stdin.end();
    await ended;
  }
}
