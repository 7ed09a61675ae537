import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { readDaemonConfig, TlsFiles } from "#api/daemon-config.ts";
import { KeyFingerprint } from "#api/schemas.ts";
import { omitUndefined } from "#base/omit-undefined.ts";

/**
 * The founder's first writes, as deploy_node puts them into its configuration. They are used once, only by a state that
 * `kcore controller found` made, and only without `replication.join`.
 */
export const Bootstrap = z.object({
  cluster: z.string(),
  /** The operators: the SHA-256 of each one's public key (DER SubjectPublicKeyInfo), lower-case hex. */
  operators: z.array(z.object({ name: z.string(), spki: KeyFingerprint })).min(1),
  /** The founder. */
  controller: z.object({ spki: KeyFingerprint, address: z.string().optional(), dc: z.string().default("DC1") }),
});
export type Bootstrap = z.infer<typeof Bootstrap>;

/** `/etc/kcore/controller.yaml`: names and defaults as in the kcore documentation. */
export const ControllerConfig = z.object({
  /** Address and port of the API. */
  listenAddr: z.string().default("[::]:9090"),
  /** Folder of the controller's state. */
  dbPath: z.string().default("/var/lib/kcore/controller"),
  tls: TlsFiles("controller"),
  /** This controller's own sub-CA, with which it renews nodes' certificates. The key is made on this controller. */
  subCa: z
    .object({
      certFile: z.string().default("/etc/kcore/certs/sub-ca.crt"),
      keyFile: z.string().default("/etc/kcore/certs/sub-ca.key"),
    })
    .prefault({}),
  /** Folder of the keys and certificates that the controller makes for itself, writable for it; by default `pki` below `dbPath`. */
  keyFolder: z.string().optional(),
  replication: z
    .object({
      controllerId: z.string().optional(),
      dcId: z.string().default("DC1"),
      /** Accepted and ignored: other controllers are found through `join` and the replicated state. */
      peers: z.array(z.unknown()).optional(),
      /** Controllers, `host:port`, that this one joins; one of them, the sponsor, has registered it. */
      join: z.array(z.string()).default([]),
      /** Controllers, `host:port`, that a founder asks for its state if it lost that: the others of the roster. */
      rejoin: z.array(z.string()).default([]),
      /**
       * For endpoints of `join` and `rejoin` the SHA-256 of the key that must answer there, lower-case hex. Without it a
       * joining controller could not tell its sponsor from the holder of a stolen sub-CA.
       */
      joinKeys: z.record(z.string(), KeyFingerprint).default({}),
      /** `host:port` under which the other controllers and the nodes reach this one; replicated. */
      advertise: z.string().optional(),
    })
    .prefault({}),
  bootstrap: Bootstrap.optional(),
  /** A file whose `replication.join`, `joinKeys`, `rejoin` and `bootstrap` replace those here; it may be missing. */
  beginning: z.string().optional(),
  /** Whether new nodes wait for `kcore node approve`; true if it is true on any controller. */
  requireManualApproval: z.boolean().default(false),
  /** Seconds without a heartbeat after which a node is not ready. */
  staleAfterSecs: z.number().positive().max(86_400).default(90),
  /** Seconds between two checks of the nodes' readiness. */
  staleCheckIntervalSecs: z.number().positive().max(86_400).default(30),
});
export type ControllerConfig = z.infer<typeof ControllerConfig>;

/**
 * Reads `controller.yaml` and its `beginning` file; the result's `beginning` is undefined if there is no such file.
 * @throws KcoreError FILE_UNREADABLE, CONFIG_INVALID, and the errors of `parse`
 */
export async function readControllerConfig(options: Parameters<typeof readDaemonConfig>[0]): Promise<ControllerConfig> {
  const config = await readDaemonConfig(options, ControllerConfig);
  const { beginning } = config;
  if (beginning === undefined || !existsSync(beginning)) return { ...config, beginning: undefined };
  const begins = ControllerConfig.pick({ replication: true, bootstrap: true });
  const { replication, bootstrap } = await readDaemonConfig({ ...options, configFile: beginning }, begins);
  const { join: joined, joinKeys, rejoin } = replication;
  return {
    ...config,
    replication: { ...config.replication, join: joined, joinKeys, rejoin },
    ...omitUndefined({ bootstrap }),
  };
}

/** The paths of the keys and certificates that the controller makes for itself. */
export function ownKeyFiles(config: Pick<ControllerConfig, "dbPath" | "keyFolder">): readonly string[] {
  const names = ["controller.crt", "controller.key", "sub-ca.crt", "sub-ca.key"];
  return names.map((name) => join(keyFolderOf(config), name));
}

export function keyFolderOf({ keyFolder, dbPath }: Pick<ControllerConfig, "dbPath" | "keyFolder">): string {
  return keyFolder ?? join(dbPath, "pki");
}
