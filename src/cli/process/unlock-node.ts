import { appendEntry } from "#audit/append-entry.ts";
import { findLockedRoot, unlockRoot } from "#actions/unlock-root.ts";
import type { UnlockRequest } from "#engine/orchestrate/run-types.ts";
import type { UnlockOutcome } from "#engine/transport/unlock-host.ts";
import { unreachableCodes } from "#engine/session/problems.ts";
import { KcoreError } from "#errors/problem.ts";
import { contextFolder, findContext } from "#pki/contexts.ts";
import { escrowTrail, recoveryKeySent } from "#pki/escrow.ts";
import { contextHome } from "./kcore-home.ts";

/** Milliseconds in which an unlocked initrd may still answer, though it refuses every login. */
const unlockedMs = 60_000;

/**
 * Returns a function that unlocks the encrypted root of a node at its initrd, at each boot in a run, and says whether it did.
 * While the initrd cannot be reached, that function throws a code of `unreachableCodes`; when waiting cannot help, UNLOCK_FAILED.
 */
export function unlocker(
  who: string,
  {
    now = Date.now,
    unlock = unlockByEscrow,
  }: { readonly now?: () => number; readonly unlock?: typeof unlockByEscrow } = {},
): (request: UnlockRequest) => Promise<boolean> {
  const opened = new Map<string, number>();
  return async (request) => {
    const { name, id, vars } = request.node;
    if (vars["encryptOs"] !== true || now() - (opened.get(id) ?? -unlockedMs) < unlockedMs) return false;
    try {
      const end = await unlock(request, who);
      if (end === "open" || end === "lost") opened.set(id, now());
      return end === "open";
    } catch (error) {
      throw unlockFailure(name, error);
    }
  };
}

/** Unlocks the node's root by the recovery key in the context's escrow, and records the access. Undefined if the escrow has no such key. */
async function unlockByEscrow(
  { node, context, ...request }: UnlockRequest,
  who: string,
): Promise<UnlockOutcome | undefined> {
  const place = contextHome();
  const folder = contextFolder(place.home, (await findContext(place, context)).name);
  const root = await findLockedRoot(folder, node.id);
  const record = (target: string): void =>
    void appendEntry(escrowTrail(folder), Date.now(), recoveryKeySent(who, target));
  return root && (await unlockRoot(root, { ...request, folder, record }));
}

/** Waiting helps only while the node is unreachable, so any other KcoreError becomes UNLOCK_FAILED, which ends the waiting. */
function unlockFailure(node: string, error: unknown): unknown {
  const [problem] = error instanceof KcoreError ? error.problems : [];
  if (!problem || unreachableCodes.has(problem.code) || problem.code === "UNLOCK_FAILED") return error;
  const message = `${node} waits to be unlocked: ${problem.message}`;
  return new KcoreError({ ...problem, code: "UNLOCK_FAILED", message }, { cause: error, exitCode: 1 });
}
