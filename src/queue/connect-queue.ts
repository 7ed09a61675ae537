import type { Redis } from "ioredis";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ErrorCode } from "#errors/codes.ts";
import { KcoreError } from "#errors/problem.ts";
import type { SecretReference } from "#engine/params/secret-reference.ts";
import type { QueueSettings } from "./queue-settings.ts";

export interface QueueConnection {
  readonly redis: Redis;
  /** A further connection, for reads that block. */
  readonly connect: () => Redis;
  readonly close: () => void;
}

const DEFAULT_PORT = 6379;
const CONNECT_MS = 5_000;
const MOST_RETRY_MS = 2_000;
const OLDEST = [6, 2] as const;

/**
 * Connects to the queue's Redis, and checks that it keeps its data.
 * @throws KcoreError QUEUE_UNREACHABLE, QUEUE_UNFIT, QUEUE_LIBRARY
 */
export async function connectQueue(
  { url, password, ca }: QueueSettings,
  { project, readSecret }: { readonly project: string; readonly readSecret: (of: SecretReference) => Promise<string> },
): Promise<QueueConnection> {
  const { Redis: Client } = await loadLibrary();
  const { protocol, hostname, port, username, pathname } = new URL(url);
  const options = {
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port) || DEFAULT_PORT,
    db: Number(pathname.slice(1)) || 0,
    ...(username !== "" && { username: decodeURIComponent(username) }),
    ...(password && { password: await readSecret(password) }),
    ...(protocol === "rediss:" && { tls: ca === undefined ? {} : { ca: readFileSync(join(project, ca)) } }),
    connectTimeout: CONNECT_MS,
    // BullMQ demands it: a command waits while the client connects again.
    maxRetriesPerRequest: null,
    retryStrategy: (attempt: number) => Math.min(attempt * 100, MOST_RETRY_MS),
  };
  const open = (): Redis => {
    const redis = new Client(options);
    // Without a listener an error would end the process; commands fail or wait by themselves.
    redis.on("error", () => undefined);
    return redis;
  };
  const first = new Client({ ...options, lazyConnect: true, enableReadyCheck: false, retryStrategy: () => null });
  let failure: Error | undefined;
  first.on("error", (error) => (failure ??= error));
  try {
    await first.connect();
    checkServer(await first.info(), url);
  } catch (error) {
    throw error instanceof KcoreError ? error : unreachable(url, failure ?? (error as Error));
  } finally {
    first.disconnect();
  }
  const all: Redis[] = [];
  const connect = (): Redis => {
    const redis = open();
    all.push(redis);
    return redis;
  };
  return { redis: connect(), connect, close: () => all.forEach((redis) => redis.disconnect()) };
}

async function loadLibrary(): Promise<{ readonly Redis: typeof Redis }> {
  try {
    await import("bullmq");
    return await import("ioredis");
  } catch (cause) {
    throw new KcoreError(
      {
        code: "QUEUE_LIBRARY",
        message: "runs over a queue need two libraries that kcore does not bring",
        hint: "npm install bullmq@6.7.0 ioredis@6.0.0, where kcore is installed",
      },
      { cause },
    );
  }
}

/** @throws KcoreError QUEUE_UNFIT when Redis would forget jobs */
function checkServer(info: string, url: string): void {
  const value = (name: string): string => new RegExp(`^${name}:(.*)$`, "m").exec(info)?.[1]?.trim() ?? "";
  const version = value("redis_version");
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
    throw unfit(url, `is version ${version || "unknown"}`, `install Redis ${OLDEST.join(".")} or later, or Valkey`);
  const policy = value("maxmemory_policy");
  if (policy !== "noeviction")
    throw unfit(
      url,
      `may drop jobs when its memory is full (maxmemory-policy ${policy})`,
      "maxmemory-policy noeviction",
    );
  if (value("aof_enabled") !== "1")
    throw unfit(url, "keeps nothing over a restart (appendonly no)", "appendonly yes; appendfsync everysec suffices");
}

function unfit(url: string, what: string, hint: string): KcoreError {
  return problem("QUEUE_UNFIT", `the Redis at ${new URL(url).host} ${what}`, `in redis.conf: ${hint}`);
}

function unreachable(url: string, error: Error): KcoreError {
  const { message } = error;
  const { host } = new URL(url);
  const hint = /WRONGPASS|NOAUTH/.test(message)
    ? "queue.url names the user, queue.password refers to the password"
    : message.includes("NOPERM")
      ? "docs/scale.md has the rights that kcore needs"
      : /certificate|self.signed/i.test(message)
        ? "queue.ca names the CA of Redis' certificate"
        : "is Redis running there, and does a firewall let this machine in?";
  return problem("QUEUE_UNREACHABLE", `the Redis at ${host} cannot be used: ${message}`, hint, error);
}

function problem(code: ErrorCode, message: string, hint: string, cause?: Error): KcoreError {
  return new KcoreError({ code, message, hint }, { cause });
}
