import { hostname as systemName, machine } from "node:os";
import { join } from "node:path";
import { firstCertificate } from "#pki/chain.ts";
import { identityOf } from "#pki/identity.ts";
import { ensurePrivateFolder, readText } from "#pki/private-files.ts";
import { verifyStatement } from "#pki/statement.ts";
import { Statement, type SignedStatement } from "#rollout/spec.ts";
import { Desk } from "./desk.ts";
import { updatesFolder } from "./files.ts";
import { lockFolder } from "./lock.ts";
import { nixosWay } from "./nixos-way.ts";
import { presentSystem } from "./nixos-systems.ts";
import { nodePorts } from "./node-ports.ts";
import type { Log } from "./ports.ts";
import { presentRuntime, runtimeWay } from "./runtime-way.ts";
import { Updater } from "./updater.ts";

export interface UpdaterOptions {
  /** The node's state folder: `updates` lies there, and the agent's status. */
  readonly stateDir: string;
  /** The cluster's root, and the node's own certificate, which says which cluster that is. */
  readonly caFile: string;
  readonly certFile: string;
  /** What the node is called in the cluster; else as its system says. */
  readonly hostname?: string;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Carries out what lies in the inbox, and what was cut off; then it has ended. Stopped by the signal, the next one goes on. */
export async function runUpdater(options: UpdaterOptions): Promise<void> {
  const { stateDir, caFile, certFile, hostname = systemName(), log, signal } = options;
  const folder = updatesFolder(stateDir);
  await ensurePrivateFolder(folder);
  const lock = await lockFolder(folder);
  if (!lock) return log.info("another updater is at work");
  const ports = nodePorts(signal);
  const desk = new Desk({
    folder,
    ports,
    log,
    verify: (signed) => readStatement(signed, { caFile, certFile }),
    present: (brings) => (brings === "system" ? presentSystem(ports, folder) : presentRuntime(ports)),
  });
  const statusFile = join(stateDir, "status.json");
  const wayOf = (statement: Statement) =>
    statement.spec.target.flakeRef === undefined
      ? runtimeWay({ ports, statement, folder, statusFile, arch: machine() })
      : nixosWay({ ports, statement, folder, statusFile, hostName: hostname });
  try {
    await new Updater({ desk, ports, log, wayOf }).run();
  } catch (error) {
    if (!signal.aborted) throw error;
    log.info("was stopped; the next start goes on");
  } finally {
    lock.close();
  }
}

/** Read each time: certificates are renewed while an update goes on. @throws KcoreError UPDATE_UNSIGNED, FILE_UNREADABLE, PKI_IDENTITY */
async function readStatement(
  signed: SignedStatement,
  { caFile, certFile }: Pick<UpdaterOptions, "caFile" | "certFile">,
): Promise<Statement> {
  const [rootPem, certificate] = await Promise.all([readText(caFile), readText(certFile)]);
  const { cluster } = identityOf(firstCertificate(certificate), "client");
  return Statement.parse(verifyStatement(signed, { rootPem, cluster }));
}
