import { exitCodes, KcoreError } from "#errors/problem.ts";
import { hostname as systemName, machine } from "node:os";
import { join } from "node:path";
import { firstCertificate } from "#pki/chain.ts";
import { identityOf } from "#pki/identity.ts";
import { lockFolder } from "#base/lock-folder.ts";
import { readText } from "#base/file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { bringsOf, type Statement } from "#rollout/spec.ts";
import { Desk } from "./desk.ts";
import { updatesFolder } from "./files.ts";
import { nixosWay } from "./nixos-way.ts";
import { presentSystem } from "./nixos-systems.ts";
import { nodePorts } from "./node-ports.ts";
import type { Log } from "./ports.ts";
import { readStatement, type StatementFiles } from "./read-statement.ts";
import { presentRuntime, runtimeWay } from "./runtime-way.ts";
import { Updater } from "./updater.ts";

export interface UpdaterOptions extends StatementFiles {
  /** The node's state folder: `updates` lies there, and the agent's status. */
  readonly stateDir: string;
  /** What the node is called in the cluster; else as its system says. */
  readonly hostname?: string;
  readonly dc: string;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Carries out what lies in the inbox, and what was cut off; then it has ended. Stopped by the signal, the next one goes on. */
export async function runUpdater(options: UpdaterOptions): Promise<void> {
  const { stateDir, caFile, certFile, hostname = systemName(), dc, log, signal } = options;
  const folder = updatesFolder(stateDir);
  await ensurePrivateFolder(folder);
  const unlock = await lockFolder(folder);
  // systemd tries again: whoever has the lock may leave work behind.
  if (!unlock)
    throw new KcoreError(
      { code: "NODE_LOCKED", message: "another updater is at work", hint: "systemctl status kcore-updater" },
      { exitCode: exitCodes.failed },
    );
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
    bringsOf(statement.spec) === "runtime"
      ? runtimeWay({ ports, statement, folder, statusFile, arch: machine() })
      : nixosWay({ ports, statement, folder, statusFile, hostName: hostname });
  const self = async () => {
    const { id } = identityOf(firstCertificate(await readText(certFile)), "client");
    return { id, hostname, dc };
  };
  try {
    await new Updater({ desk, ports, log, self, wayOf }).run();
  } catch (error) {
    if (!signal.aborted) throw error;
    log.info("was stopped; the next start goes on");
  } finally {
    unlock();
  }
}
