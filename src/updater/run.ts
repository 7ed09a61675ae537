import { hostname as systemName, machine } from "node:os";
import { dirname, join } from "node:path";
import { askOnce } from "#api/ask.ts";
import { fetchBundle } from "#api/bundle-transfer.ts";
import { loadCredentials, type CredentialFiles } from "#api/credentials.ts";
import { readText } from "#base/file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { lockFolder } from "#base/lock-folder.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { firstCertificate } from "#pki/chain.ts";
import { identityOf } from "#pki/identity.ts";
import { verifyStatement } from "#pki/statement.ts";
import { updateKindOf, type SignedStatement } from "#rollout/spec.ts";
import { readAgentPart } from "./daemons.ts";
import { updatesFolder } from "./files.ts";
import { presentSystem } from "./nixos-systems.ts";
import { nixosStrategy } from "./nixos-strategy.ts";
import { nodePorts } from "./node-ports.ts";
import type { UpdaterLog, Ports } from "./ports.ts";
import { presentRuntime, runtimeStrategy } from "./runtime-strategy.ts";
import { Updater } from "./updater.ts";

export interface UpdaterOptions {
  /** The node's own certificate, key and root. */
  readonly tls: CredentialFiles;
  /** The node's state folder, with `updates` and the agent's status in it. */
  readonly stateDir: string;
  /** The node's name in the cluster; absent: the system's name. */
  readonly hostname?: string;
  readonly dc: string;
  /** Endpoints of controllers, from which bundles are fetched. */
  readonly controllers: readonly string[];
  readonly log: UpdaterLog;
  readonly signal: AbortSignal;
}

/** Carries out the order in the inbox, and an interrupted step. After the signal, the next start continues. @throws KcoreError NODE_LOCKED */
export async function runUpdater(options: UpdaterOptions): Promise<void> {
  const { stateDir, tls, hostname = systemName(), dc, controllers, log, signal } = options;
  const folder = updatesFolder(stateDir);
  await ensurePrivateFolder(folder);
  const unlock = await lockFolder(folder);
  // An error, so that systemd starts the updater again: the one that has the lock may leave work.
  if (!unlock)
    throw new KcoreError(
      { code: "NODE_LOCKED", message: "another updater is at work", hint: "systemctl status kcore-updater" },
      { exitCode: exitCodes.failed },
    );
  const statusFile = join(stateDir, "status.json");
  const download: Ports["download"] = async (bundle, file, stop) => {
    await ensurePrivateFolder(dirname(file));
    // The agent may have learned of controllers that the configuration does not name.
    const { controller } = (await readAgentPart(ports, statusFile)) ?? {};
    const endpoints = [...new Set([...(controller === undefined ? [] : [controller]), ...controllers])];
    const eitherSignal = AbortSignal.any([signal, stop]);
    const options = { endpoints, credentials: await loadCredentials(tls, "node"), clock: Date.now, isPatient: false };
    await askOnce({ ...options, signal: eitherSignal }, (client) =>
      fetchBundle(client, bundle, file, { signal: eitherSignal }),
    );
  };
  const ports = nodePorts(signal, download);
  try {
    const { id } = identityOf(firstCertificate(await readText(tls.certFile)), "client");
    const common = { ports, log, folder, statusFile };
    await new Updater({
      ...common,
      self: { id, hostname, dc },
      verify: (signed) => readStatement(signed, tls),
      present: (brings) => (brings === "system" ? presentSystem(ports, folder) : presentRuntime(ports)),
      strategyOf: (statement) =>
        updateKindOf(statement.spec) === "runtime"
          ? runtimeStrategy({ ...common, statement, arch: machine() })
          : nixosStrategy({ ...common, statement, hostName: hostname }),
    }).run();
  } catch (error) {
    if (!signal.aborted) throw error;
    log.info("was stopped; the next start goes on");
  } finally {
    unlock();
  }
}

/**
 * The contents of a statement, if this cluster's bastion signed it. The files are read each time, because certificates are renewed during
 * an update.
 * @throws KcoreError UPDATE_UNSIGNED, FILE_UNREADABLE, PKI_IDENTITY
 */
export async function readStatement(
  signed: SignedStatement,
  { caFile, certFile }: Pick<CredentialFiles, "caFile" | "certFile">,
): Promise<unknown> {
  const [rootPem, certificate] = await Promise.all([readText(caFile), readText(certFile)]);
  const { cluster } = identityOf(firstCertificate(certificate), "client");
  return verifyStatement(signed, { rootPem, cluster });
}
