import { appendEntry } from "#audit/append-entry.ts";
import { findLockedRoot, unlockRoot } from "#actions/unlock-root.ts";
import type { UnlockRequest } from "#engine/orchestrate/run-types.ts";
import type { UnlockOutcome } from "#engine/transport/unlock-host.ts";
import { unreachableCodes } from "#engine/session/problems.ts";
import { KcoreError } from "#errors/problem.ts";
import { contextFolder, findContext } from "#pki/contexts.ts";
import { escrowTrail, recoveryKeySent } from "#pki/escrow.ts";
import { contextHome } from "./kcore-home.ts";

/** Milliseconds in which an initrd that was unlocked still answers, and refuses every login. */
const leaving = 60_000;

/**
 * Unlocks the encrypted roots of nodes that a run waits for, at their initrd, at each boot of the run.
 * Throws HOST_UNREACHABLE while a node does not wait there, UNLOCK_FAILED when waiting is of no use.
 */
export function unlocker(
  who: string,
  { now = Date.now, unlock = unlockKept }: { readonly now?: () => number; readonly unlock?: typeof unlockKept } = {},
): (asked: UnlockRequest) => Promise<boolean> {
  const opened = new Map<string, number>();
  return async (asked) => {
    const { name, id, vars } = asked.node;
    if (vars["encryptOs"] !== true || now() - (opened.get(id) ?? -leaving) < leaving) return false;
    try {
      const end = await unlock(asked, who);
      if (end === "open" || end === "lost") opened.set(id, now());
      return end === "open";
    } catch (error) {
      throw unlockFailure(name, error);
    }
  };
}

/** Unlocks the node by a key that is kept here, and records that access. Undefined: no key of the node is kept here. */
async function unlockKept({ node, context, ...asked }: UnlockRequest, who: string): Promise<UnlockOutcome | undefined> {
  const place = contextHome();
  const folder = contextFolder(place.home, (await findContext(place, context)).name);
  const root = await findLockedRoot(folder, node.id);
  const record = (target: string): void =>
    void appendEntry(escrowTrail(folder), Date.now(), recoveryKeySent(who, target));
  return root && (await unlockRoot(root, { ...asked, folder, record }));
}

/**
 * Waiting longer helps only if the node is unreachable; every other error becomes UNLOCK_FAILED, which ends the
 * waiting.
 */
function unlockFailure(node: string, error: unknown): unknown {
  const [problem] = error instanceof KcoreError ? error.problems : [];
  if (!problem || unreachableCodes.has(problem.code) || problem.code === "UNLOCK_FAILED") return error;
  const message = `${node} waits to be unlocked: ${problem.message}`;
  return new KcoreError({ ...problem, code: "UNLOCK_FAILED", message }, { cause: error, exitCode: 1 });
}
