import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openApi } from "#api/client.ts";
import type { ApiClient, Credentials } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { createLog } from "#api/log.ts";
import type { Registration } from "#api/schemas.ts";
import { serveController } from "#controller/serve.ts";
import { printYaml } from "#engine/source/plain.ts";
import { firstCertificate } from "#pki/chain.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import { codec, eventually, issueTo, startDaemon, writeCredentials } from "./cluster.ts";
import type { Daemon, TestCluster } from "./cluster.ts";
import { freePort } from "./ports.ts";

/** One controller of a test's cluster: in this process, or as a process of its own. */
export interface TestController {
  readonly id: string;
  /** `host:port` where it listens. */
  readonly endpoint: string;
  /** `host:port` where the others reach it. */
  readonly advertised: string;
  /** Lines of its log. */
  readonly log: () => string;
  /** With the operator's certificate; closed with the cluster. */
  readonly operator: ApiClient;
  /** A client with other credentials; closed with the cluster. */
  readonly clientOf: (credentials: Credentials) => ApiClient;
  readonly start: () => Promise<void>;
  /** In good order, or by a signal when it is a process. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<void>;
  readonly dbPath: string;
  readonly credentials: Credentials;
}

export interface ControllersOptions {
  /** Each as a process of its own; else all in this one. */
  readonly processes?: boolean;
  /** More keys of controller.yaml, by index. */
  readonly config?: (index: number) => object;
  /** Where the others are told to reach controller `index`; a test's proxy, maybe. */
  readonly advertise?: (index: number, endpoint: string) => Promise<string>;
  readonly dcs?: readonly string[];
  /** Awaited before controller `index` is registered and started; `first` runs by then. */
  readonly prepare?: (index: number, first: TestController) => Promise<void>;
}

/** SHA-256 of the public key in a certificate. */
export function spkiOf({ cert }: Pick<Credentials, "cert">): string {
  return keyFingerprint(publicDer(firstCertificate(cert).publicKey));
}

/**
 * Starts `count` controllers as deploy_node does: the first with a bootstrap, each other one registered at the first and
 * joining it. Resolves when all are ready and know each other.
 */
export async function startControllers(
  cluster: TestCluster,
  count: number,
  options: ControllersOptions = {},
): Promise<{ readonly controllers: readonly TestController[]; readonly stop: () => Promise<void> }> {
  const controllers: TestController[] = [];
  const clients: ApiClient[] = [];
  const stop = async (): Promise<void> => {
    for (const client of clients) client.close();
    await Promise.all(controllers.map((controller) => controller.stop("SIGKILL")));
  };
  try {
    for (let index = 0; index < count; index++) {
      const first = controllers[0];
      if (first) await options.prepare?.(index, first);
      const made = await makeController(cluster, index, { ...options, first, clients });
      const { id, advertised } = made;
      const body = { spki: spkiOf(made.credentials), address: advertised, dc: dcOf(options, index) };
      if (first) await first.operator.call("registerController", body, { id });
      controllers.push(made);
      await made.start();
      await eventually(() => isReady(made));
    }
    await eventually(() => areAllInStep(controllers));
    return { controllers, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function isReady({ operator }: TestController): Promise<boolean> {
  return operator.call("ready", {}).then(
    ({ ready }) => ready,
    () => false,
  );
}

/** Whether each of these controllers sees every other one in step. */
export async function areAllInStep(controllers: readonly TestController[]): Promise<boolean> {
  const states = await Promise.all(controllers.map(({ operator }) => operator.call("ready", {})));
  return states.every(({ peers }) => peers.length >= controllers.length - 1 && peers.every(({ inStep }) => inStep));
}

/** A node's certificate, issued as the bastion's sub-CA does. */
export function nodeCredentials(cluster: TestCluster, id: string): Credentials {
  return issueTo(cluster.authority, "node", id);
}

/** What an agent would tell. */
export function registrationOf(nodeId: string, changes: Partial<Registration> = {}): Registration {
  return {
    nodeId,
    hostname: `host-${nodeId.slice(0, 8)}`,
    address: "192.0.2.1",
    cpu: 2,
    memory: 2 ** 30,
    labels: {},
    dc: "DC1",
    roles: ["worker"],
    version: "1",
    ...changes,
  };
}

function dcOf({ dcs = [] }: ControllersOptions, index: number): string {
  return dcs[index] ?? "DC1";
}

async function makeController(
  cluster: TestCluster,
  index: number,
  {
    first,
    clients,
    processes = false,
    config = () => ({}),
    advertise = (_index, endpoint) => Promise.resolve(endpoint),
    ...rest
  }: ControllersOptions & { readonly first: TestController | undefined; readonly clients: ApiClient[] },
): Promise<TestController> {
  const id = randomUUID();
  const host = `127.0.0.${index + 11}`;
  const endpoint = `${host}:${await freePort(host)}`;
  const advertised = await advertise(index, endpoint);
  const dc = dcOf(rest, index);
  const folder = join(cluster.dir, `controller-${index}-${id.slice(0, 4)}`);
  const credentials = issueTo(cluster.authority, "controller", id, {
    host,
    addresses: [parseEndpoint(advertised).host],
  });
  const tls = await writeCredentials(folder, "controller", credentials);
  const dbPath = join(folder, "db");
  const bootstrap = {
    cluster: cluster.authority.cluster,
    operators: [{ name: "ann", spki: spkiOf(cluster.operator) }],
    controller: { spki: spkiOf(credentials), address: advertised, dc },
  };
  const settings = {
    listenAddr: endpoint,
    dbPath,
    tls,
    subCa: { certFile: join(folder, "sub-ca.crt"), keyFile: join(folder, "sub-ca.key") },
    replication: { controllerId: id, dcId: dc, advertise: advertised, ...(first ? { join: [first.advertised] } : {}) },
    ...(first ? {} : { bootstrap }),
    ...config(index),
  };
  const configFile = join(folder, "controller.yaml");
  await writeFile(configFile, printYaml(settings));
  const clientOf = (given: Credentials): ApiClient => {
    const client = openApi({ endpoint: parseEndpoint(endpoint), credentials: given, clock: Date.now });
    clients.push(client);
    return client;
  };
  const runner = processes ? inProcess(configFile, settings) : inThisProcess(configFile);
  return { id, endpoint, advertised, operator: clientOf(cluster.operator), clientOf, dbPath, credentials, ...runner };
}

type Runner = Pick<TestController, "log" | "start" | "stop">;

function inThisProcess(configFile: string): Runner {
  let text = "";
  let running: { readonly abort: AbortController; readonly served: Promise<void> } | undefined;
  const log = createLog({ write: (line) => (text += line), clock: Date.now });
  return {
    log: () => text,
    start: () =>
      new Promise((resolve, reject) => {
        const abort = new AbortController();
        const common = { configFile, parse: codec.parse, signal: abort.signal, log, clock: Date.now, version: "1" };
        const served = serveController({ ...common, onListening: () => resolve() });
        running = { abort, served };
        served.catch(reject);
      }),
    async stop() {
      running?.abort.abort();
      await running?.served.catch(() => undefined);
      running = undefined;
    },
  };
}

function inProcess(configFile: string, settings: object): Runner {
  let daemon: Daemon | undefined;
  let before = "";
  return {
    log: () => before + (daemon?.log() ?? ""),
    async start() {
      before += daemon?.log() ?? "";
      daemon = await startDaemon(["controller", "serve"], configFile, settings);
      await daemon.logged("the controller listens");
    },
    async stop(signal = "SIGTERM") {
      await daemon?.end(signal);
    },
  };
}
