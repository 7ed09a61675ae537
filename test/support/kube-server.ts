import { spawn, type ChildProcess } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { json, text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { hangLimit } from "./limit.ts";
import { freePort } from "./ports.ts";
import { makeTempDir, type TempDir } from "./temp-dir.ts";

/** The folder of scripts/make-kube-apiserver.sh's output, in the lab's cache. */
const cache = join(process.env["KCORE_LAB_DIR"] ?? "/var/lib/kcore-lab", "kube");
/** The paths of a real API server's programs in the cache. */
export const kubePrograms = { apiserver: join(cache, "kube-apiserver"), etcd: join(cache, "etcd") } as const;

/**
 * Declares tests with one real API server, which is started before and stopped after them. If its programs are not in the cache, the tests
 * are skipped; a failed start is a failure.
 */
export function describeWithKube(title: string, define: (kube: () => KubeServer) => void): void {
  const missing = withoutKube();
  let server: KubeServer | undefined;
  describe(title, () => {
    before(async function () {
      if (missing !== undefined) {
        process.stderr.write(`skipped: ${title}: ${missing}\n`);
        return this.skip();
      }
      server = await KubeServer.start();
    });
    after(() => server?.stop());
    define(() => server as KubeServer);
  });
}

/** The reason why no real API server can run here; undefined if it can. */
export function withoutKube(): string | undefined {
  const missing = Object.values(kubePrograms).filter((path) => !existsSync(path));
  return missing.length === 0
    ? undefined
    : `${missing.join(", ")} not in the test cache; make it with: sh scripts/make-kube-apiserver.sh`;
}

/** The bearer tokens of users. The user `nobody` has no rights until a role grants them. */
const users = { admin: "tok,admin,1,system:masters", nobody: "tok2,nobody,2" } as const;
const tokens = { admin: "tok", nobody: "tok2" } as const;

/**
 * A real API server with its etcd, on ports of its own, without controllers and kubelets.
 * A test creates nodes and pods, and sets their status.
 */
export class KubeServer {
  readonly #folder: TempDir;
  readonly #port: number;
  readonly #store: string;
  readonly #etcd: ChildProcess;
  #apiserver: ChildProcess | undefined;

  private constructor(folder: TempDir, port: number, store: { readonly url: string; readonly etcd: ChildProcess }) {
    this.#folder = folder;
    this.#port = port;
    this.#store = store.url;
    this.#etcd = store.etcd;
  }

  static async start(): Promise<KubeServer> {
    const folder = await makeTempDir("kube");
    const [port, clients, peers] = [await freePort(), await freePort(), await freePort()];
    const [url, peer] = [`http://127.0.0.1:${clients}`, `http://127.0.0.1:${peers}`];
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    writeFileSync(join(folder.path, "sa.key"), privateKey.export({ type: "pkcs1", format: "pem" }));
    writeFileSync(join(folder.path, "tokens.csv"), `${Object.values(users).join("\n")}\n`);
    const etcd = start(folder, "etcd", {
      "data-dir": join(folder.path, "etcd"),
      "unsafe-no-fsync": "true",
      "listen-client-urls": url,
      "advertise-client-urls": url,
      "listen-peer-urls": peer,
      "initial-advertise-peer-urls": peer,
      "initial-cluster": `default=${peer}`,
    });
    const server = new KubeServer(folder, port, { url, etcd });
    try {
      await server.resume();
      return server;
    } catch (error) {
      const log = readFileSync(join(folder.path, "apiserver.log"), "utf8").slice(-2000);
      await server.stop();
      throw new Error(`the API server did not start: ${log}`, { cause: error });
    }
  }

  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  /** The CA certificate that signed the server's. */
  get ca(): string {
    return readFileSync(join(this.#folder.path, "certs/apiserver.crt"), "utf8");
  }

  /** Starts the API server (again), and waits until it is ready. */
  async resume(): Promise<void> {
    const { path } = this.#folder;
    this.#apiserver = start(this.#folder, "apiserver", {
      "etcd-servers": this.#store,
      "secure-port": String(this.#port),
      "bind-address": "127.0.0.1",
      "cert-dir": join(path, "certs"),
      "authorization-mode": "RBAC",
      "token-auth-file": join(path, "tokens.csv"),
      "service-cluster-ip-range": "10.96.0.0/16",
      // Pods of a test have no service account.
      "disable-admission-plugins": "ServiceAccount",
      "service-account-issuer": "https://kubernetes.default.svc",
      "service-account-key-file": join(path, "sa.key"),
      "service-account-signing-key-file": join(path, "sa.key"),
    });
    for (const end = performance.now() + hangLimit; ;) {
      if (this.#apiserver.exitCode !== null || performance.now() > end) throw new Error("it ended, or hangs");
      if (await this.#isReady()) return;
      await sleep(200);
    }
  }

  /** Kills the API server; its state stays. */
  async pause(): Promise<void> {
    await end(this.#apiserver);
  }

  async stop(): Promise<void> {
    await end(this.#apiserver);
    await end(this.#etcd);
    await this.#folder.remove();
  }

  /** A kubeconfig for a user of the server. */
  kubeconfig({
    user = "admin",
    token = tokens[user],
    ca = this.ca,
  }: { user?: keyof typeof tokens; token?: string; ca?: string } = {}): string {
    return JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "test",
      clusters: [
        {
          name: "test",
          cluster: { server: this.url, "certificate-authority-data": Buffer.from(ca).toString("base64") },
        },
      ],
      contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
      users: [{ name: "test", user: { token } }],
    });
  }

  /** Sends a request as the admin, without kcore. @throws Error for a status of 300 or more */
  async call(method: string, path: string, body?: unknown, type = "application/json"): Promise<KubeObject> {
    const reply = await this.#ask(method, path, body, type);
    const answer = (await json(reply)) as KubeObject;
    if ((reply.statusCode ?? 500) >= 300)
      throw new Error(`${method} ${path}: ${reply.statusCode} ${JSON.stringify(answer)}`);
    return answer;
  }

  /** The number of evictions that the server has accepted since its start. */
  async countEvictions(): Promise<number> {
    const isEviction = /^apiserver_request_total\{code="201",.*dry_run="",.*subresource="eviction",.*\} (\d+)$/gm;
    const metrics = await text(await this.#ask("GET", "/metrics"));
    return [...metrics.matchAll(isEviction)].reduce((sum, [, count]) => sum + Number(count), 0);
  }

  async get(path: string): Promise<KubeObject> {
    return this.call("GET", path);
  }

  async create(path: string, body: unknown): Promise<KubeObject> {
    return this.call("POST", path, body);
  }

  async patch(path: string, body: unknown): Promise<KubeObject> {
    return this.call("PATCH", path, body, "application/merge-patch+json");
  }

  async #ask(method: string, path: string, body?: unknown, type = "application/json"): Promise<IncomingMessage> {
    const headers = { Authorization: `Bearer ${tokens.admin}`, "Content-Type": type };
    const asked = request(`${this.url}${path}`, { method, ca: this.ca, headers });
    asked.end(body === undefined ? undefined : JSON.stringify(body));
    const [reply] = (await once(asked, "response")) as [IncomingMessage];
    return reply;
  }

  async #isReady(): Promise<boolean> {
    try {
      const asked = request(`${this.url}/readyz`, { rejectUnauthorized: false });
      asked.end();
      const [reply] = (await once(asked, "response")) as [IncomingMessage];
      await text(reply);
      if (reply.statusCode !== 200) return false;
      // The server makes the first namespace a moment later.
      await this.get("/api/v1/namespaces/default");
      return true;
    } catch {
      return false;
    }
  }
}

/** An object or a list of the API: the fields that tests read. */
export interface KubeObject {
  readonly metadata: {
    readonly name: string;
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Record<string, string>;
  };
  readonly data: Readonly<Record<string, string>>;
  readonly spec: {
    readonly unschedulable?: boolean;
    readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  };
  readonly items: readonly KubeObject[];
}

function start(
  { path }: TempDir,
  name: keyof typeof kubePrograms,
  flags: Readonly<Record<string, string>>,
): ChildProcess {
  const file = openSync(join(path, `${name}.log`), "a");
  const words = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
  const child = spawn(kubePrograms[name], words, { stdio: ["ignore", file, file] });
  closeSync(file);
  return child;
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), hangLimit);
  await ended;
  clearTimeout(timer);
}
