import { shortAge } from "#base/units.ts";
import { appendEntry } from "#audit/append-entry.ts";
import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { contextFolder, findContext } from "#pki/contexts.ts";
import { escrowTrail, openEscrowKey, readEscrows, unseal, type Escrow, type SealedKey } from "#pki/escrow.ts";
import { withCaPassphrase } from "../cluster/ca-passphrase.ts";
import { contextHome } from "../process/kcore-home.ts";
import { whoAmI } from "../process/who.ts";
import { formatResult } from "../terminal/format-result.ts";
import { formatTable } from "../terminal/format-table.ts";
import type { CommonFlags, ResultFormat } from "../options.ts";

export interface RecoveryFlags extends CommonFlags {
  readonly passphraseFile?: string;
  readonly output: ResultFormat;
}

/**
 * `kcore disk recovery-key NODE [DISK]`: prints a node's encrypted disks, or records the access and prints the recovery key
 * of one disk.
 * @throws KcoreError RECOVERY_KEY_UNKNOWN, RECOVERY_KEY_UNREADABLE, PKI_PASSPHRASE_WRONG, PKI_CONTEXT_UNKNOWN
 */
export async function showRecoveryKey(node: string, disk: string | undefined, flags: RecoveryFlags): Promise<void> {
  const { name } = await findContext(contextHome(), flags.context);
  const folder = contextFolder(contextHome().home, name);
  const escrow = findEscrow(await readEscrows(folder), node);
  const newest = [...new Map(escrow.keys.map((key) => [key.uuid, key])).values()];
  if (disk === undefined) {
    const listed = newest.map(({ uuid, disks, at }) => ({ uuid, disks, since: new Date(at).toISOString() }));
    const rows = newest.map(({ uuid, disks, at }) => [disks.join(", "), uuid, shortAge(Date.now() - at)]);
    process.stdout.write(
      formatResult(listed, flags.output, () => formatTable(["DISKS", "CONTAINER", "KEPT FOR"], rows)),
    );
    return;
  }
  const found = pickKey(newest, disk, escrow.node);
  const key = await withCaPassphrase(flags.passphraseFile, (passphrase) => openEscrowKey(folder, passphrase));
  const recoveryKey = unseal(found, key);
  const target = `${escrow.node} ${found.uuid}`;
  // The audit trail gets the record before the operator gets the key.
  appendEntry(escrowTrail(folder), Date.now(), { type: "recovery-key.shown", who: whoAmI(), target });
  const { uuid, disks } = found;
  process.stdout.write(
    formatResult({ node: escrow.node, uuid, disks, recoveryKey }, flags.output, () => `${recoveryKey}\n`),
  );
}

function findEscrow(escrows: readonly Escrow[], word: string): Escrow {
  const found = escrows.find(({ node, id }) => node === word || id === word);
  if (found) return found;
  throw new KcoreError({
    code: "RECOVERY_KEY_UNKNOWN",
    message: `no recovery key of a node “${word}” is kept here`,
    hint: suggestHint(
      word,
      escrows.map(({ node }) => node),
      "deploy_node brings those of nodes with encryptDisks or encryptOs: true",
    ),
  });
}

function pickKey(keys: readonly SealedKey[], word: string, node: string): SealedKey {
  const [found, other] = keys.filter(({ uuid, disks }) => uuid === word.toLowerCase() || disks.includes(word));
  if (found && !other) return found;
  throw new KcoreError({
    code: "RECOVERY_KEY_UNKNOWN",
    message: found
      ? `several encrypted containers of ${node} lie on a disk ${word}`
      : `no recovery key of a disk ${word} of ${node} is kept here`,
    hint: `kcore disk recovery-key ${node} lists them; a container's UUID names exactly one`,
  });
}
