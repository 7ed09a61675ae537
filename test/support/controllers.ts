import { randomUUID, type KeyObject } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ApiRefusal, openApi, type ApiClient, type Credentials } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { createLog } from "#api/log.ts";
import type { Registration } from "#api/schemas.ts";
import { foundHere } from "#controller/found-or-join.ts";
import { serveController } from "#controller/serve.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { firstCertificate } from "#pki/chain.ts";
import { openRoot } from "#pki/cluster.ts";
import { contextFolder } from "#pki/contexts.ts";
import { inventoryEntry } from "#pki/issued.ts";
import { generateKey, keyFingerprint, proveKey, publicDer } from "#pki/keys.ts";
import { issueSubCa } from "#pki/sub-ca.ts";
import {
  codec,
  eventually,
  issueTo,
  passphrase,
  startDaemon,
  writeCredentials,
  type Daemon,
  type TestCluster,
} from "./cluster.ts";
import { hangLimit } from "./limit.ts";
import { freePort } from "./ports.ts";

/** One controller of a test's cluster: in this process, or as a process of its own. */
export interface TestController {
  readonly id: string;
  /** The `host:port` at which it listens. */
  readonly endpoint: string;
  /** The `host:port` at which the other controllers reach it. */
  readonly advertised: string;
  /** Lines of its log. */
  readonly log: () => string;
  /** A client with the operator's certificate. */
  readonly operator: ApiClient;
  /** A client with other credentials. A certificate of {@link nodeCredentials} is recorded before the first call. */
  readonly clientOf: (credentials: Credentials) => ApiClient;
  /** Resolves when the controller listens and no longer asks its peers for missed transactions. */
  readonly start: () => Promise<void>;
  /** Ends the controller in good order, or by a signal if it is a process. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<void>;
  /** The pid of its process. */
  readonly pid: () => number;
  /** Ends the controller at once (SIGKILL), and closes its clients. */
  readonly end: () => Promise<void>;
  /** The folder of its certificate, key and configuration. */
  readonly folder: string;
  readonly dbPath: string;
  readonly credentials: Credentials;
}

/** The place of a controller's process outside of this machine's loopback network. */
export interface ControllerPlace {
  /** The `host:port` at which it listens. */
  readonly endpoint: string;
  /** The command that execs it. */
  readonly through?: readonly string[];
  /** The program; by default the present one. */
  readonly program?: string;
}

export interface ControllerOptions {
  /** The controller that registers and admits this one; without it, this one is the first of its cluster. */
  readonly sponsor?: TestController;
  /** Whether it runs in a process of its own. */
  readonly process?: boolean;
  /** More keys of controller.yaml. */
  readonly config?: object;
  readonly host?: string;
  readonly place?: ControllerPlace;
  /** Maps its endpoint to the address that the other controllers get. */
  readonly advertise?: (endpoint: string) => Promise<string>;
  readonly dc?: string;
}

export interface ControllersOptions {
  /** Whether each runs in a process of its own. */
  readonly processes?: boolean;
  /** More keys of controller.yaml, by index. */
  readonly config?: (index: number) => object;
  /** The address of controller `index` that the others get; a test's proxy, for example. */
  readonly advertise?: (index: number, endpoint: string) => Promise<string>;
  readonly dcs?: readonly string[];
  /** The place of controller `index`, which is a process. */
  readonly place?: (index: number) => ControllerPlace;
  /** Awaited before controller `index` is registered and started; `first` runs by then. */
  readonly prepare?: (index: number, first: TestController) => Promise<void>;
}

/** SHA-256 of the public key in a certificate. */
export function spkiOf({ cert }: Pick<Credentials, "cert">): string {
  return keyFingerprint(publicDer(firstCertificate(cert).publicKey));
}

/** Starts one controller with a sub-CA of its own, in the state that deploy_node leaves; resolves when it is ready. */
export async function startController(cluster: TestCluster, options: ControllerOptions = {}): Promise<TestController> {
  const controller = await prepareController(cluster, options);
  const { id, advertised, credentials } = controller;
  try {
    const body = { spki: spkiOf(credentials), address: advertised, dc: options.dc ?? "DC1" };
    await options.sponsor?.operator.call("registerController", body, { id });
    await controller.start();
    await eventually(() => isReady(controller));
    return controller;
  } catch (error) {
    await controller.end();
    throw error;
  }
}

/**
 * Starts `count` controllers as deploy_node does: the first with a bootstrap, each other one registered at the first and
 * joining it. Resolves when all are ready and know each other.
 */
export async function startControllers(
  cluster: TestCluster,
  count: number,
  { processes = false, config, advertise, dcs = [], place, prepare }: ControllersOptions = {},
): Promise<{ readonly controllers: readonly TestController[]; readonly stop: () => Promise<void> }> {
  const controllers: TestController[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(controllers.map((controller) => controller.end()));
  };
  try {
    for (let index = 0; index < count; index++) {
      const first = controllers[0];
      if (first) await prepare?.(index, first);
      const options: ControllerOptions = {
        process: processes,
        host: `127.0.0.${index + 11}`,
        dc: dcs[index] ?? "DC1",
        ...(first && { sponsor: first }),
        ...(config && { config: config(index) }),
        ...(place && { place: place(index) }),
        ...(advertise && { advertise: (endpoint) => advertise(index, endpoint) }),
      };
      controllers.push(await startController(cluster, options));
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

/** Waits until these controllers have all present writes of `from`: the writes of one controller arrive in order. */
export async function waitForWritesOf(from: TestController, controllers: readonly TestController[]): Promise<void> {
  const id = `Order/${randomUUID()}`;
  await from.operator.call("putObject", { value: {} }, { id });
  for (const { operator } of controllers)
    await eventually(() =>
      operator.call("getObject", {}, { id }).then(
        () => true,
        () => false,
      ),
    );
}

/** Certificates that the bastion issued and the cluster does not know yet. */
const unrecorded = new WeakSet<Credentials>();

/**
 * A node's certificate, which is recorded in the cluster before its first use, as the bastion does. `issueTo` makes one that is never
 * recorded.
 */
export function nodeCredentials(
  cluster: TestCluster,
  id: string,
  options: { readonly now?: number; readonly key?: KeyObject } = {},
): Credentials {
  const credentials = issueTo(cluster.authority, "node", id, options);
  unrecorded.add(credentials);
  return credentials;
}

/** Records certificates at a controller before their first use: a controller accepts a node's key only then (S-10). */
export async function recordAt(
  { operator }: Pick<TestController, "operator">,
  ...issued: readonly Pick<Credentials, "cert">[]
): Promise<void> {
  await Promise.all(
    issued.map(async ({ cert }) => {
      const entry = inventoryEntry(cert);
      if (entry) await operator.call("recordCertificate", entry);
    }),
  );
}

/** Renews a node's certificate with the client's present one, as the agent does, without a registration. */
export async function renewCredentials(client: ApiClient, nodeId: string, ca: string): Promise<Credentials> {
  const { nonce, challenge } = await client.call("renewChallenge", { nodeId });
  const key = generateKey();
  const spki = publicDer(key).toString("base64");
  const { certificate } = await client.call("renew", { nodeId, nonce, spki, signature: proveKey(key, challenge) });
  return { ca, cert: certificate, key: key.export({ type: "pkcs8", format: "pem" }) as string };
}

/** The code of a controller's refusal; `allowed` if it answers. */
export function refusalCodeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "allowed",
    (error: unknown) => (error instanceof ApiRefusal ? error.reason : String(error)),
  );
}

/** The client, which records its certificate before its first call. */
function recordingFirst(client: ApiClient, operator: ApiClient, credentials: Credentials): ApiClient {
  const recorded = async (): Promise<void> => {
    if (unrecorded.delete(credentials)) await recordAt({ operator }, credentials);
  };
  return {
    ...client,
    call: async (name, body, options) => {
      await recorded();
      return client.call(name, body, options);
    },
  };
}

/** A registration as an agent sends it. */
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

/** All that a controller needs to start, not yet known to the cluster; {@link startController} does the rest. */
export async function prepareController(
  cluster: TestCluster,
  {
    sponsor,
    process: isProcess = false,
    config = {},
    place,
    host = place === undefined ? "127.0.0.1" : parseEndpoint(place.endpoint).host,
    advertise = (endpoint) => Promise.resolve(endpoint),
    dc = "DC1",
  }: ControllerOptions,
): Promise<TestController> {
  const id = randomUUID();
  const endpoint = place?.endpoint ?? `${host}:${await freePort(host)}`;
  const advertised = await advertise(endpoint);
  const folder = join(cluster.dir, `controller-${id}`);
  const credentials = issueTo(cluster.authority, "controller", id, {
    host,
    addresses: [parseEndpoint(advertised).host],
  });
  const dbPath = join(folder, "db");
  const bootstrap = {
    cluster: cluster.authority.cluster,
    operators: [{ name: "ann", spki: spkiOf(cluster.operator) }],
    controller: { spki: spkiOf(credentials), address: advertised, dc },
  };
  const settings = {
    listenAddr: endpoint,
    dbPath,
    tls: await writeCredentials(folder, "controller", credentials),
    subCa: await writeSubCa(cluster, { id, folder, hosts: [host, parseEndpoint(advertised).host] }),
    keyFolder: folder,
    replication: {
      controllerId: id,
      dcId: dc,
      advertise: advertised,
      ...(sponsor && { join: [sponsor.advertised], joinKeys: { [sponsor.advertised]: spkiOf(sponsor.credentials) } }),
    },
    ...(sponsor ? {} : { bootstrap }),
    ...config,
  };
  const configFile = join(folder, "controller.yaml");
  await writeFile(configFile, printYaml(settings));
  if (!sponsor) {
    await mkdir(dbPath, { recursive: true });
    await foundHere({ configFile, now: Date.now(), yaml: codec });
  }
  const clients: ApiClient[] = [];
  const clientOf = (given: Credentials): ApiClient => {
    const client = openApi({
      endpoint: parseEndpoint(endpoint),
      credentials: given,
      clock: Date.now,
      timeoutMs: hangLimit,
    });
    clients.push(client);
    return unrecorded.has(given) ? recordingFirst(client, operator, given) : client;
  };
  const runner = isProcess ? inProcess(configFile, settings, place) : inThisProcess(configFile);
  const end = async (): Promise<void> => {
    for (const client of clients) client.close();
    await runner.stop("SIGKILL");
  };
  const operator = clientOf(cluster.operator);
  const start = async (): Promise<void> => {
    await runner.start();
    await eventually(async () => !(await isAsking(operator)));
  };
  return { id, endpoint, advertised, operator, clientOf, folder, dbPath, credentials, ...runner, start, end };
}

/** Whether a controller still asks its peers for the transactions that it missed. */
async function isAsking(operator: ApiClient): Promise<boolean> {
  const { reason } = await operator.call("ready", {}).catch(() => ({ reason: undefined }));
  return reason?.startsWith("it has just started") === true;
}

async function writeSubCa(
  { home, authority }: TestCluster,
  {
    id: controllerId,
    folder,
    hosts,
  }: { readonly id: string; readonly folder: string; readonly hosts: readonly string[] },
): Promise<{ readonly certFile: string; readonly keyFile: string }> {
  const root = await openRoot(contextFolder(home, authority.cluster), passphrase);
  const key = generateKey();
  const proof = { challenge: "test", signature: proveKey(key, "test") };
  const spki = publicDer(key).toString("base64");
  const files = { certFile: join(folder, "sub-ca.crt"), keyFile: join(folder, "sub-ca.key") };
  await writeFile(files.keyFile, key.export({ type: "pkcs8", format: "pem" }) as string, { mode: 0o600 });
  await writeFile(files.certFile, issueSubCa({ controllerId, spki, proof, hosts }, { root, now: Date.now() }));
  return files;
}

type Runner = Pick<TestController, "log" | "start" | "stop" | "pid">;

function inThisProcess(configFile: string): Runner {
  let text = "";
  let running: { readonly abort: AbortController; readonly served: Promise<void> } | undefined;
  const log = createLog({ write: (line) => (text += line), clock: Date.now });
  return {
    log: () => text,
    start: () =>
      new Promise((resolve, reject) => {
        const abort = new AbortController();
        const signal = abort.signal;
        const time = { clock: Date.now, random: Math.random };
        const common = { configFile, parse: codec.parse, signal, log, ...time, version: "1" };
        const served = serveController({ ...common, onListening: () => resolve() });
        running = { abort, served };
        served.catch(reject);
      }),
    async stop() {
      running?.abort.abort();
      await running?.served.catch(() => undefined);
      running = undefined;
    },
    pid: () => process.pid,
  };
}

function inProcess(configFile: string, settings: object, place?: ControllerPlace): Runner {
  let daemon: Daemon | undefined;
  let before = "";
  return {
    log: () => before + (daemon?.log() ?? ""),
    async start() {
      before += daemon?.log() ?? "";
      daemon = await startDaemon(["controller", "serve"], configFile, settings, place);
      await daemon.logged("the controller listens");
    },
    async stop(signal = "SIGTERM") {
      await daemon?.end(signal);
    },
    pid: () => daemon?.child.pid ?? 0,
  };
}
