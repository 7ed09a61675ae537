import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openApi } from "#api/client.ts";
import type { ApiClient } from "#api/client.ts";
import { openRoot } from "#pki/cluster.ts";
import { contextFolder } from "#pki/contexts.ts";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";
import { issueSubCa } from "#pki/sub-ca.ts";
import { issueTo, passphrase, startDaemon, writeCredentials } from "./cluster.ts";
import type { Daemon, TestCluster } from "./cluster.ts";
import { spkiOf } from "./controllers.ts";
import { freePort } from "./ports.ts";

/** A real controller as a process, with a sub-CA of its own, as deploy_node leaves it. */
export interface TestController {
  readonly id: string;
  readonly port: number;
  readonly endpoint: string;
  daemon: Daemon;
  /** Its operator's client. */
  readonly client: () => ApiClient;
  /** Starts it again after its process ended. */
  readonly restart: () => Promise<void>;
}

/** Starts a controller: the first of the cluster, or one that joins `sponsor`, which registers it first. */
export async function startController(
  cluster: TestCluster,
  {
    sponsor,
    config = {},
    now = Date.now(),
  }: { readonly sponsor?: TestController; readonly config?: object; readonly now?: number } = {},
): Promise<TestController> {
  const id = randomUUID();
  const port = await freePort();
  const endpoint = `127.0.0.1:${port}`;
  const folder = join(cluster.dir, `controller-${id}`);
  await mkdir(folder);
  const credentials = issueTo(cluster.authority, "controller", id, { now });
  const spki = spkiOf(credentials);
  const subCa = await writeSubCa(cluster, id, folder, now);
  if (sponsor) await sponsor.client().call("registerController", { spki, address: endpoint }, { id });
  const bootstrap = {
    cluster: cluster.authority.cluster,
    operators: [{ name: "ann", spki: spkiOf(cluster.operator) }],
    controller: { spki, address: endpoint },
  };
  const whole = {
    listenAddr: endpoint,
    dbPath: join(folder, "db"),
    tls: await writeCredentials(folder, "controller", credentials),
    subCa,
    replication: {
      controllerId: id,
      dcId: "DC1",
      advertise: endpoint,
      ...(sponsor && { join: [sponsor.endpoint] }),
    },
    ...(sponsor ? {} : { bootstrap }),
    ...config,
  };
  const start = async (): Promise<Daemon> => {
    const daemon = await startDaemon(["controller", "serve"], join(folder, "controller.yaml"), whole);
    await daemon.logged("the controller listens");
    return daemon;
  };
  const controller: TestController = {
    id,
    port,
    endpoint,
    daemon: await start(),
    client: () =>
      openApi({ endpoint: { host: "127.0.0.1", port }, credentials: cluster.operator, clock: () => now + 1 }),
    async restart() {
      controller.daemon = await start();
    },
  };
  return controller;
}

async function writeSubCa(
  cluster: TestCluster,
  controllerId: string,
  folder: string,
  now: number,
): Promise<{ readonly certFile: string; readonly keyFile: string }> {
  const root = await openRoot(contextFolder(cluster.home, cluster.authority.cluster), passphrase);
  const key = generateKey();
  const proof = { challenge: "test", signature: proveKey(key, "test") };
  const spki = publicDer(key).toString("base64");
  const files = { certFile: join(folder, "sub-ca.crt"), keyFile: join(folder, "sub-ca.key") };
  await writeFile(files.keyFile, key.export({ type: "pkcs8", format: "pem" }) as string, { mode: 0o600 });
  await writeFile(files.certFile, issueSubCa({ controllerId, spki, proof }, { root, now }));
  return files;
}
