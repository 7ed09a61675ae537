import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import type { KeyObject } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Credentials } from "#api/client.ts";
import { parsePlainYaml, printYaml } from "#engine/yaml/plain-yaml.ts";
import { createCluster, openAuthority } from "#pki/cluster.ts";
import { noteBackup } from "#pki/context-backup.ts";
import { loadContext } from "#pki/contexts.ts";
import { issueLeaf } from "#pki/issue.ts";
import type { Authority } from "#pki/issue.ts";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";
import { hangLimit } from "./limit.ts";
import { nodeProgram } from "./program.ts";
import { unitEnvironment } from "./unit-environment.ts";

export const passphrase = "correct horse battery";
/** scrypt's parameters for fast tests. */
export const cheapCost = { N: 1024, r: 8, p: 1 };
export const codec = { parse: parsePlainYaml, print: printYaml };

/** A real cluster CA in a folder of its own. */
export interface TestCluster {
  readonly dir: string;
  readonly home: string;
  readonly authority: Authority;
  readonly operator: Credentials;
  readonly remove: () => Promise<void>;
}

export async function createTestCluster(context = "lab"): Promise<TestCluster> {
  const dir = await mkdtemp(join(tmpdir(), "kcore-test-"));
  const home = join(dir, "home");
  const plan = { home, codec, context, controllers: [], operator: "ann", passphrase, now: Date.now(), cost: cheapCost };
  const { folder } = await createCluster(plan);
  await noteBackup(folder);
  const authority = await openAuthority(folder, passphrase);
  const { ca, cert, key } = await loadContext({ home, codec });
  return {
    dir,
    home,
    authority,
    operator: { ca, cert, key },
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}

/** Issues credentials to a member as in production, but makes the key itself. */
export function issueTo(
  authority: Authority,
  role: "controller" | "node",
  id: string,
  {
    host = "127.0.0.1",
    addresses = [],
    now = Date.now(),
    key = generateKey(),
  }: {
    readonly host?: string;
    readonly addresses?: readonly string[];
    readonly now?: number;
    readonly key?: KeyObject;
  } = {},
): Credentials {
  const challenge = `test ${id}`;
  const { chain } = issueLeaf(
    {
      role,
      id,
      host,
      addresses,
      spki: publicDer(key).toString("base64"),
      proof: { challenge, signature: proveKey(key, challenge) },
    },
    { authority, now },
  );
  return { ca: authority.rootPem, cert: chain, key: key.export({ type: "pkcs8", format: "pem" }) as string };
}

/** Writes credentials in a node's layout, and returns the paths for a configuration. */
export async function writeCredentials(
  folder: string,
  role: string,
  credentials: Credentials,
): Promise<{ readonly caFile: string; readonly certFile: string; readonly keyFile: string }> {
  await mkdir(folder, { recursive: true });
  const files = {
    caFile: join(folder, "ca.crt"),
    certFile: join(folder, `${role}.crt`),
    keyFile: join(folder, `${role}.key`),
  };
  await writeFile(files.caFile, credentials.ca);
  await writeFile(files.keyFile, credentials.key, { mode: 0o600 });
  await writeFile(files.certFile, credentials.cert);
  return files;
}

/** A daemon as a real process, with its log. */
export interface Daemon {
  readonly child: ChildProcess;
  readonly log: () => string;
  readonly configFile: string;
  /** Waits for a line of the log with this message, and resolves with its fields. */
  readonly logged: (message: string) => Promise<Record<string, unknown>>;
  /** Sends a signal and waits for the end; resolves with the exit code. */
  readonly end: (signal?: NodeJS.Signals) => Promise<number | null>;
}

/**
 * Starts nodeProgram, or the program that KCORE_NODE_PROGRAM names; `through` is a command that execs it, such as nsenter(1).
 * A controller gets the environment of its unit. An agent does not, since that environment allows no compiler, which sources need.
 */
export async function startDaemon(
  words: readonly ["controller", "serve"] | readonly ["agent" | "updater", "run"],
  configFile: string,
  config: object,
  {
    through = [],
    program = process.env["KCORE_NODE_PROGRAM"] ?? nodeProgram,
  }: { readonly through?: readonly string[]; readonly program?: string } = {},
): Promise<Daemon> {
  await writeFile(configFile, printYaml(config));
  // The daemon dies with the test, even if the test is killed or the daemon is stopped (SIGSTOP).
  const args = [
    "--pdeathsig",
    "KILL",
    ...through,
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    program,
    ...words,
    "--config",
    configFile,
  ];
  const env = { ...process.env, ...(words[0] === "controller" && unitEnvironment("controller")) };
  const child = spawn("setpriv", args, { stdio: ["ignore", "ignore", "pipe"], env });
  let text = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  const exited = once(child, "exit");
  const find = (message: string): Record<string, unknown> | undefined =>
    text
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .find((line) => line["message"] === message);
  return {
    child,
    configFile,
    log: () => text,
    async logged(message) {
      for (const end = performance.now() + hangLimit; performance.now() < end;) {
        const found = find(message);
        if (found) return found;
        if (child.exitCode !== null || child.signalCode !== null) break;
        await sleep(20);
      }
      throw new Error(`no “${message}” in the log of ${words.join(" ")}:\n${text}`);
    },
    async end(signal = "SIGTERM") {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill(signal);
        await exited;
      }
      return child.exitCode;
    },
  };
}

/** Calls `look` until it returns a value other than undefined and false, and resolves with that. */
export async function eventually<Value>(
  look: () => Promise<Value | undefined | false> | Value | undefined | false,
): Promise<Value> {
  for (const end = performance.now() + hangLimit; performance.now() < end;) {
    const found = await look();
    if (found !== undefined && found !== false) return found as Value;
    await sleep(25);
  }
  throw new Error(`it did not happen within ${hangLimit / 1000} s`);
}
