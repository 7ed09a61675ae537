import { unlockHost, type UnlockOutcome } from "#engine/transport/unlock-host.ts";
import type { Connect, Endpoint } from "#engine/transport/host.ts";
import { secret } from "#engine/step/secret.ts";
import { KcoreError } from "#errors/problem.ts";
import { openEscrowKey, readEscrows, unseal, type Escrow, type SealedKey, type InitrdEndpoint } from "#pki/escrow.ts";

/** The bastion's record of a machine whose root is encrypted. */
export interface LockedRoot {
  readonly node: string;
  readonly unlock: InitrdEndpoint;
  readonly sealed: SealedKey;
}

export interface UnlockOptions {
  /** The endpoint of the running machine; the initrd has the same address. */
  readonly endpoint: Endpoint;
  readonly connect: Connect;
  /** The context's folder. */
  readonly folder: string;
  /** The passphrase of the CA's keys; asked for only after the machine answered. @throws KcoreError */
  readonly passphrase: () => Promise<string>;
  /** Records that the key is sent, before it is. `target`: machine and container. */
  readonly record: (target: string) => void;
  readonly signal: AbortSignal;
}

/** Milliseconds to connect: short, since an initrd either answers at once or does not run yet. */
const timeout = 5_000;

/** The record of a node's locked root; undefined: the bastion has none. @throws KcoreError RECOVERY_KEY_UNREADABLE */
export async function findLockedRoot(folder: string, id: string): Promise<LockedRoot | undefined> {
  const escrow: Escrow | undefined = (await readEscrows(folder)).find((one) => one.id === id);
  const sealed = escrow?.keys.findLast(({ uuid }) => uuid === escrow.unlock?.uuid);
  return escrow?.unlock && sealed && { node: escrow.node, unlock: escrow.unlock, sealed };
}

/**
 * Sends the recovery key of its root to a machine that waits in its initrd. Only an initrd with the recorded host key gets the key. Errors
 * of `connect` other than a wrong host key or a refused login stay as they are.
 * @throws KcoreError of `connect`, UNLOCK_FAILED, PKI_PASSPHRASE_WRONG, PKI_KEY_UNREADABLE, FILE_UNREADABLE, RECOVERY_KEY_UNREADABLE
 */
export async function unlockRoot(root: LockedRoot, options: UnlockOptions): Promise<UnlockOutcome> {
  const { endpoint, connect, folder, passphrase, record, signal } = options;
  const { port, hostKey, uuid } = root.unlock;
  const initrd = { ...endpoint, port, user: "root", hostKeys: [hostKey] };
  const host = await connect(initrd, { timeout, signal }).catch((error: unknown) => {
    throw refusal(endpoint.name, error);
  });
  try {
    const key = secret(unseal(root.sealed, await openEscrowKey(folder, await passphrase())));
    record(`${root.node} ${uuid}`);
    return await unlockHost(host, key.reveal(), signal);
  } finally {
    await host.close();
  }
}

/** UNLOCK_FAILED for a wrong host key or a refused login; any other error as it is, since the next attempt may succeed. */
function refusal(node: string, error: unknown): unknown {
  const [problem] = error instanceof KcoreError ? error.problems : [];
  if (!problem || !/^HOST_KEY_|^AUTH_/.test(problem.code)) return error;
  const { message, detail } = problem;
  const hint = problem.code.startsWith("HOST_KEY_")
    ? "the key was made when the system was installed; a machine with another one may be an attacker's. At the console: kcore disk recovery-key NODE"
    : "the initrd accepts the SSH keys that the live system accepted at the installation, and no login once the machine goes on booting";
  return new KcoreError(
    {
      code: "UNLOCK_FAILED",
      message: `${node} was not unlocked, nothing was sent: ${message}`,
      hint,
      ...(detail !== undefined && { detail: detail.replaceAll(", by the roster", "") }),
    },
    { cause: error, exitCode: 1 },
  );
}
