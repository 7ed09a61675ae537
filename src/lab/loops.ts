import { poll } from "#base/wait.ts";
import { KcoreError, exitCodes } from "#errors/problem.ts";
import { must, run } from "./run-command.ts";

/** Loop devices (`/dev/loop3`) whose file's path begins so. */
export async function findLoops(prefix: string): Promise<string[]> {
  const text = await must("losetup", ["-n", "-O", "NAME,BACK-FILE"]);
  return text.split("\n").flatMap((line) => {
    const [name = "", file = ""] = line.trim().split(/\s+/);
    return file.startsWith(prefix) ? [name] : [];
  });
}

/** Detaches them, with the partitions that the nodes' helper told the kernel of. */
export async function detachLoops(prefix: string): Promise<void> {
  for (const device of await findLoops(prefix)) {
    await run("partx", ["-d", device]);
    await run("losetup", ["-d", device]);
  }
}

/** Waits until no loop device holds the file: mounts end only when the last namespace that sees them is gone. */
export async function waitUntilFree(file: string): Promise<void> {
  const look = async (): Promise<boolean> => (await run("losetup", ["-j", file])).stdout === "";
  if (await poll(look, { everyMs: 30, limitMs: 5_000 })) return;
  throw new KcoreError(
    { code: "LAB_LEFTOVERS", message: `${file} is still held: a mount of it lives on in some mount namespace` },
    { exitCode: exitCodes.failed },
  );
}
