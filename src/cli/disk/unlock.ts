import { appendEntry } from "#audit/append-entry.ts";
import { findLockedRoot, unlockRoot } from "#actions/unlock-root.ts";
import { KcoreError } from "#errors/problem.ts";
import { contextFolder, findContext } from "#pki/contexts.ts";
import { openEscrowKey, escrowTrail, recoveryKeySent } from "#pki/escrow.ts";
import { withCaPassphrase } from "../cluster/ca-passphrase.ts";
import { contextHome } from "../process/kcore-home.ts";
import { machineEndpoint, withTransport } from "../roster/find-machine.ts";
import { findProject } from "../project/find-project.ts";
import { whoAmI } from "../process/who.ts";
import { nodeNamed, ownRoster } from "../roster/own-roster.ts";
import { formatResult } from "../terminal/format-result.ts";
import type { RecoveryFlags } from "./recovery-key.ts";

/**
 * `kcore disk unlock NODE`: records the access, then sends a machine that waits at boot the key of its root.
 * @throws KcoreError ROSTER_NODE_UNKNOWN, RECOVERY_KEY_UNKNOWN, HOST_UNREACHABLE, UNLOCK_FAILED, PKI_PASSPHRASE_WRONG
 */
export async function unlockDisk(name: string, flags: RecoveryFlags): Promise<void> {
  const roster = ownRoster(findProject(flags.project));
  const entry = nodeNamed(roster, name);
  const context = await findContext(contextHome(), flags.context);
  const folder = contextFolder(contextHome().home, context.name);
  const root = await findLockedRoot(folder, entry.id);
  if (!root)
    throw new KcoreError({
      code: "RECOVERY_KEY_UNKNOWN",
      message: `no way to unlock ${name} is kept here: kcore made no encrypted root on it from this context`,
      hint: "--context NAME, if another one did; deploy_node brings it of nodes with encryptOs: true",
    });
  const end = await withTransport(({ connect }) =>
    unlockRoot(root, {
      endpoint: machineEndpoint({ entry, roster }),
      connect,
      folder,
      passphrase: () =>
        withCaPassphrase(flags.passphraseFile, async (passphrase) => {
          await openEscrowKey(folder, passphrase);
          return passphrase;
        }),
      record: (target) => void appendEntry(escrowTrail(folder), Date.now(), recoveryKeySent(whoAmI(), target)),
      signal: new AbortController().signal,
    }),
  ).catch((error: unknown) => {
    throw withPortHint(error, name, root.unlock.port);
  });
  if (end !== "open") {
    const what =
      end === "lost" ? "was gone before it said that its disk is open" : "did not ask for the key of its disk";
    const hint = `if it does not come up (kcore ping --on ${name}), try again`;
    throw new KcoreError({ code: "UNLOCK_FAILED", message: `${name} ${what}`, hint }, { exitCode: 1 });
  }
  const { uuid } = root.unlock;
  process.stdout.write(
    formatResult({ node: name, uuid, unlocked: true }, flags.output, () => `${name} is unlocked and goes on booting\n`),
  );
}

/** Adds the hint that a machine listens on this port only while its root is locked. */
function withPortHint(error: unknown, name: string, port: number): unknown {
  const [problem] = error instanceof KcoreError ? error.problems : [];
  if (problem?.code !== "HOST_UNREACHABLE") return error;
  const hint = `port ${port} answers only while it waits to be unlocked; does it run? kcore ping --on ${name}`;
  return new KcoreError({ ...problem, hint }, { cause: error, exitCode: (error as KcoreError).exitCode });
}
