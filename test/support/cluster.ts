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
/** Cheap encryption, so that tests are fast. */
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

/** Credentials for a member, issued as in production, but with a key that is made here. */
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

/** Writes credentials in a node's layout, and gives the paths for a configuration. */
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
  /** Resolves when the log holds a line with this message. */
  readonly logged: (message: string) => Promise<Record<string, unknown>>;
  /** Sends a signal and waits for the end; gives the exit code. */
  readonly end: (signal?: NodeJS.Signals) => Promise<number | null>;
}

/**
 * Starts the program of the nodes (nodeProgram), or the one that KCORE_NODE_PROGRAM names; `through` is a command that execs it, such as
 * nsenter(1).
 * A controller gets the settings of its unit. An agent does not: sources cannot be read without a compiler.
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
  // The daemon dies with the test, also if the test is killed, and also while it is stopped.
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

/** Waits until `look` gives something other than undefined or false. */
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
