import { appendEntry } from "#audit/append-entry.ts";
import { findLockedRoot, unlockRoot } from "#actions/unlock-root.ts";
import type { Unlocking } from "#engine/orchestrate/execute.ts";
import { unreachable } from "#engine/session/problems.ts";
import { KcoreError } from "#errors/problem.ts";
import { contextFolder, findContext } from "#pki/contexts.ts";
import { escrowTrail, recoveryKeySent } from "#pki/escrow.ts";
import { contextHome } from "../cluster/context-home.ts";

/**
 * Opens the root of a node that a run waits for, if kcore encrypted it: each boot of a run ends at its initrd. Recorded as any look at the key is.
 * @throws KcoreError HOST_UNREACHABLE while it does not wait there, UNLOCK_FAILED when there is no use in waiting
 */
export async function unlockNode({ node, context, ...asked }: Unlocking, who: string): Promise<boolean> {
  if (node.vars["encryptOs"] !== true) return false;
  try {
    const place = contextHome();
    const folder = contextFolder(place.home, (await findContext(place, context)).name);
    const root = await findLockedRoot(folder, node.id);
    const record = (target: string): void =>
      void appendEntry(escrowTrail(folder), Date.now(), recoveryKeySent(who, target));
    return root !== undefined && (await unlockRoot(root, { ...asked, folder, record }));
  } catch (error) {
    throw whatNobodyMends(node.name, error);
  }
}

/** Waiting longer helps against what keeps us from reaching it, and against nothing else. */
function whatNobodyMends(node: string, error: unknown): unknown {
  const [problem] = error instanceof KcoreError ? error.problems : [];
  if (!problem || unreachable.has(problem.code) || problem.code === "UNLOCK_FAILED") return error;
  const message = `${node} waits to be unlocked: ${problem.message}`;
  return new KcoreError({ ...problem, code: "UNLOCK_FAILED", message }, { cause: error, exitCode: 1 });
}
