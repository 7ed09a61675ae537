import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Host } from "./host.ts";
import { openSshFiles, type Hop } from "./openssh-config.ts";
import { keyInUse, loginFailure } from "./openssh-failure.ts";
import { createOpenSshHost } from "./openssh-host.ts";
import { MasterEnded, startMaster } from "./openssh-master.ts";

export interface OpenSshOptions {
  /** Jump hosts first, with the trusted keys of each host. */
  readonly hops: readonly [Hop, ...Hop[]];
  /** Where `.ssh/config` is looked for. */
  readonly home: string;
  readonly signal: AbortSignal;
}

/**
 * A connection made by this machine's own `ssh` (ADR 0019): with the features of ssh_config(5), security keys and GSSAPI that ssh2
 * lacks. One process holds it, a short one each opens a channel on it. @throws KcoreError as `Connect`
 */
export async function openOpenSsh({ hops, home, signal }: OpenSshOptions): Promise<Host> {
  const { endpoint, trusted } = hops.at(-1) as Hop;
  // Short: the path of a socket has no more than 107 bytes (unix(7)), and ssh adds to it.
  const folder = await mkdtemp(join(tmpdir().length < 40 ? tmpdir() : "/tmp", "kcore-"));
  try {
    const { config, knownHosts } = openSshFiles(hops, { folder, home });
    await writeFile(join(folder, "known_hosts"), knownHosts, { mode: 0o600 });
    await writeFile(join(folder, "config"), config, { mode: 0o600 });
    const master = await startMaster(folder, endpoint.address, signal).catch((error: unknown) => {
      if (error instanceof MasterEnded) throw loginFailure(endpoint, trusted, error.stderr);
      throw error;
    });
    return createOpenSshHost({
      name: endpoint.name,
      folder,
      address: endpoint.address,
      master,
      ...keyInUse(master.said(), trusted),
    });
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}
