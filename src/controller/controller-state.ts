import { join } from "node:path";
import type { LoadedCredentials } from "#api/credentials.ts";
import type { Daemon } from "#api/daemon.ts";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { knowBastionCas } from "#pki/chain.ts";
import { openOwnCertificate } from "./cluster/own-certificate.ts";
import { keyRules } from "./cluster/registers.ts";
import { keyFolderOf, readControllerConfig, type ControllerConfig } from "./controller-config.ts";
import { createReplica } from "./replica/create-replica.ts";
import type { ReplicaTimers } from "./replica/replica-ports.ts";
import { openAudit } from "./audit.ts";
import { openDatabase, type ControllerDatabase } from "./store/database.ts";
import { openNetwork } from "./transport/network.ts";

export interface ControllerOptions extends Daemon {
  /** The number of files that this process may have open; absent: enough. */
  readonly openFiles?: number;
  /** Called once with the port, as soon as the controller accepts requests. */
  readonly onListening?: (port: number) => void;
  /** Called in place of `process.exit` when the disk failed; for tests. */
  readonly onBroken?: (error: KcoreError) => void;
}

/** The parts of a controller below its services: identity, database, audit trail, network and replica. */
export type ControllerState = Awaited<ReturnType<typeof openControllerState>>;

export const monotonic = (): number => performance.now();

/** @throws KcoreError CONFIG_INVALID, FILE_UNREADABLE, PKI_IDENTITY, USAGE for a malformed address, and as openDatabase does */
export async function openControllerState(options: ControllerOptions) {
  const { configFile, log, clock, random, version } = options;
  const config = await readControllerConfig(options);
  const { dbPath, replication, tls } = config;
  const own = await openOwnCertificate({ files: tls, folder: keyFolderOf(config), log, clock });
  const { cluster, id: controllerId } = own.credentials().identity;
  checkConfig(config, configFile, own.credentials());
  const broken = new AbortController();
  const db = await openDisk(dbPath, broken, options);
  const audit = await openAudit(join(dbPath, "audit"), { clock, log });
  const keyAt = sponsorKeys(config);
  const bastion = knowBastionCas(own.credentials().ca, own.credentials().cert);
  const network = openNetwork({ controllerId, cluster, bastion, credentials: own.credentials, keyAt, log, clock });
  const sponsors = [...new Set([...replication.join, ...replication.rejoin])];
  const replica = createReplica({
    id: controllerId,
    cluster,
    clock: { wall: clock, mono: monotonic },
    rng: random,
    timers,
    net: network.net,
    db,
    // Also for a founder: `kcore controller found` marked its state.
    start: "join",
    join: sponsors,
    at: /^(?:0\.0\.0\.0|\[::\]|):/.test(config.listenAddr)
      ? (replication.advertise ?? config.listenAddr)
      : config.listenAddr,
    log: (level, message, fields) => log[level](message, fields),
  });
  const unpinned = sponsors.filter((address) => keyAt(address) === undefined);
  const warning = "the controller there is trusted by the CA's signature alone: joinKeys does not name the key";
  if (unpinned.length > 0 && !replica.status().ready) log.warn(warning, { join: unpinned });
  const self = { controllerId, dc: replication.dcId, cluster, version };
  // `broken` aborts when no write can be acknowledged any more.
  return { config, own, bastion, self, db, audit, network, replica, broken: broken.signal };
}

async function openDisk(
  folder: string,
  broken: AbortController,
  { log, onBroken }: ControllerOptions,
): Promise<ControllerDatabase> {
  const db = await openDatabase({
    folder,
    rules: keyRules,
    onBroken: (error) => {
      // After EIO the disk's content is unknown, so the controller must not acknowledge any further write (fsyncgate).
      log.error("the disk failed; the controller ends", { error: error.message });
      if (onBroken) onBroken(error);
      else process.exit(exitCodes.failed);
      broken.abort();
    },
    onNote: (note) => log.warn(note),
  });
  for (const note of db.notes) log.warn(note);
  return db;
}

export const timers: ReplicaTimers = {
  after(ms, run) {
    // unref: the server keeps the process alive, and the replica's timers must not delay its end.
    const timer = setTimeout(run, ms).unref();
    return () => clearTimeout(timer);
  },
  soon: (run) => void setImmediate(run),
};

function checkConfig(config: ControllerConfig, configFile: string, { identity }: LoadedCredentials): void {
  const configured = config.replication.controllerId;
  if (configured !== undefined && configured !== identity.id) {
    throw new KcoreError({
      code: "CONFIG_INVALID",
      message: `${configFile}: replication.controllerId is ${configured}, but ${config.tls.certFile} is the certificate of ${identity.id}`,
    });
  }
  const { bootstrap } = config;
  if (bootstrap && bootstrap.cluster !== identity.cluster) {
    throw new KcoreError({
      code: "CONFIG_INVALID",
      message: `${configFile}: bootstrap.cluster is “${bootstrap.cluster}”, but the certificate is of “${identity.cluster}”`,
    });
  }
}

/** A lookup of a key in `joinKeys` by its address, in any of the address's spellings. */
function sponsorKeys({ replication }: ControllerConfig): (address: string) => string | undefined {
  const named = Object.entries(replication.joinKeys).map(([address, key]) => [sameEndpoint(address), key] as const);
  const keysAt = new Map(named);
  return (address) => keysAt.get(sameEndpoint(address));
}

function sameEndpoint(address: string): string {
  return formatEndpoint(parseEndpoint(address)).toLowerCase();
}
