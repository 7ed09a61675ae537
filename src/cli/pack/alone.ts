import { join } from "node:path";
import { KcoreError, exitCodes } from "#errors/problem.ts";
import { withLock } from "#lab/lock.ts";

/** Seconds that another command gets for its files. */
const patience = 60;

/** Changes a project's packs while no other command does. @throws KcoreError PACK_BUSY */
export async function alone<T>(project: string, work: () => Promise<T>): Promise<T> {
  return withLock(join(project, ".kcore"), "packs", patience, work).catch((cause: unknown) => {
    if (!(cause instanceof KcoreError) || cause.problems[0]?.code !== "LAB_BUSY") throw cause;
    const message = "another kcore pack changes this project's packs";
    throw new KcoreError(
      { code: "PACK_BUSY", message, hint: "wait for it to end, then try again" },
      { cause, exitCode: exitCodes.failed },
    );
  });
}
