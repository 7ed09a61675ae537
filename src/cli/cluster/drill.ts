import { randomBytes, randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { openApi, type Credentials } from "#api/client.ts";
import { createFile } from "#base/file.ts";
import { run } from "#base/process.ts";
import { runTask, type RunTasks } from "#base/tasks.ts";
import { poll } from "#base/wait.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { KcoreError } from "#errors/problem.ts";
import { firstCertificate } from "#pki/chain.ts";
import { createCluster, openAuthority } from "#pki/cluster.ts";
import { openKeys, placeBackup } from "#pki/context-backup.ts";
import { loadContext } from "#pki/contexts.ts";
import { issueLeaf } from "#pki/issue.ts";
import { generateKey, keyFingerprint, proveKey, publicDer } from "#pki/keys.ts";
import type { ResultFormat } from "../options.ts";
import { contextHome } from "../process/kcore-home.ts";
import { ownNode } from "../process/warm-process.ts";
import { givenPassphrase } from "../terminal/given-passphrase.ts";
import { printResult } from "../terminal/format-result.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import { openArchive, type ArchiveKeys } from "./archive.ts";

/** Milliseconds until the scratch controller is ready: it asks the members that the backup names for half a minute. */
const patienceMs = 120_000;

/**
 * `kcore cluster backup --verify FILE`: restores the context into a scratch folder and the state into a scratch controller on loopback. The
 * state that this controller then serves must be the archive's. The scratch controller has a CA of its own, so no controller of the cluster
 * lets it in.
 * @throws KcoreError BACKUP_DAMAGED; as openArchive and restoreStore do
 */
export async function verifyBackup(
  file: string,
  { output, ...keys }: ArchiveKeys & { readonly output: ResultFormat },
): Promise<void> {
  const tasks = shownTasks(output);
  const { backup, passphrase } = await openArchive(file, keys, tasks);
  const scratch = await mkdtemp(join(tmpdir(), "kcore-drill-"));
  const remove = (): void => rmSync(scratch, { recursive: true, force: true });
  // Ctrl-C in a task ends the process without `finally`.
  process.once("exit", remove);
  try {
    const { context, state } = backup;
    const { folder } = await placeBackup({ ...contextHome(), home: join(scratch, "home") }, backup, Date.now());
    const tried = passphrase ?? (await givenPassphrase(keys.passphraseFile));
    if (tried !== undefined) await openKeys(folder, tried);
    const found =
      state === undefined ? undefined : await tryState(scratch, context, Buffer.from(state, "base64"), file, tasks);
    const text = found
      ? `a scratch controller serves the same ${found.registers} registers\n` +
        `${found.nodes} nodes, ${found.controllers} controllers, ${found.objects} objects; sha256 ${found.digest}\n`
      : "it has no state\n";
    const passphraseTried = tried !== undefined;
    const result = { file, context, keys: true, passphraseTried, state: found !== undefined, ...found };
    const untried = passphraseTried ? "" : " (their passphrase was not tried: --passphrase-file FILE)";
    printResult(result, output, () => `${file}: the keys of “${context}” can be restored${untried}, and ${text}`);
  } finally {
    process.off("exit", remove);
    remove();
  }
}

async function tryState(scratch: string, cluster: string, bytes: Buffer, name: string, tasks: RunTasks) {
  const [{ digestOf, readContents }, { restoreStore }] = await Promise.all([
    import("#controller/backup-contents.ts"),
    import("#controller/store/restore.ts"),
  ]);
  const { id, configFile, dbPath, operator } = await makeController(scratch, cluster);
  const file = join(scratch, "state");
  await createFile(file, bytes);
  const { contents } = await restoreStore({ folder: dbPath, id, now: Date.now(), alone: true, file, name });
  const served = await runTask(tasks, "restoring the state into a scratch controller", () =>
    withController(configFile, (port) => fetchState(port, operator)),
  );
  const [before, after] = [await readContents(bytes, name), await readContents(served, "its state")];
  const digest = digestOf(before, before.keys());
  // The scratch controller adds its own registers; those of the archive must be the same.
  if (digestOf(after, before.keys()) === digest) return { registers: before.size, digest, ...contents };
  const changed = [...before].filter(([key, row]) => after.get(key) !== row).map(([key]) => key);
  throw scratchFailed(`${changed.length} registers differ, among them ${changed[0]}`);
}

/** Writes the configuration of a controller with a CA of its own; its bootstrap makes it and its operator known in the restored state. */
async function makeController(scratch: string, cluster: string) {
  const home = { ...contextHome(), home: join(scratch, "ca") };
  const passphrase = randomBytes(24).toString("base64url");
  const plan = { ...home, context: cluster, controllers: [], operator: "drill", passphrase, now: Date.now() };
  // The passphrase is random and lives in this process alone, so the cheapest encryption does.
  const { folder } = await createCluster({ ...plan, cost: { N: 1024, r: 8, p: 1 } });
  const { ca, cert, key }: Credentials = await loadContext(home, cluster);
  const id = randomUUID();
  const own = generateKey();
  const spki = publicDer(own);
  const proof = { challenge: id, signature: proveKey(own, id) };
  const leaf = { role: "controller", id, host: "127.0.0.1", spki: spki.toString("base64"), proof } as const;
  const { chain } = issueLeaf(leaf, { authority: await openAuthority(folder, passphrase), now: Date.now() });
  const tls = { caFile: join(folder, "ca.crt"), certFile: join(folder, "own.crt"), keyFile: join(folder, "own.key") };
  await writeFile(tls.certFile, chain);
  await createFile(tls.keyFile, own.export({ type: "pkcs8", format: "pem" }));
  const dbPath = join(scratch, "db");
  await mkdir(dbPath, { mode: 0o700 });
  const operators = [{ name: "drill", spki: keyFingerprint(publicDer(firstCertificate(cert).publicKey)) }];
  const bootstrap = { cluster, operators, controller: { spki: keyFingerprint(spki) } };
  const place = { listenAddr: "127.0.0.1:0", dbPath, tls, keyFolder: join(scratch, "keys") };
  const configFile = join(scratch, "controller.yaml");
  await writeFile(configFile, printYaml({ ...place, replication: { controllerId: id }, bootstrap }));
  return { id, configFile, dbPath, operator: { ca, cert, key } };
}

/** Runs a controller as a process of its own while `work` needs it. @throws KcoreError BACKUP_DAMAGED if the controller ends by itself */
async function withController<Result>(configFile: string, work: (port: number) => Promise<Result>): Promise<Result> {
  const stop = new AbortController();
  const listening = Promise.withResolvers<number>();
  let log = "";
  const words = [...ownNode(), process.argv[1] ?? "", "controller", "serve", "--config", configFile];
  const ended = run(words, {
    signal: stop.signal,
    graceMs: 5_000,
    limitMs: 5 * patienceMs,
    tailBytes: 64 * 1024,
    onOutput(_, chunk) {
      log += chunk.toString();
      const port = /"message":"the controller listens".*"port":(\d+)/.exec(log)?.[1];
      if (port !== undefined) listening.resolve(Number(port));
    },
  });
  ended.then(({ stderr }) => listening.reject(scratchFailed(stderr)), listening.reject);
  try {
    return await work(await listening.promise);
  } finally {
    stop.abort();
    await ended.catch(() => undefined);
  }
}

async function fetchState(port: number, credentials: Credentials): Promise<Buffer> {
  const client = openApi({ endpoint: { host: "127.0.0.1", port }, credentials, clock: Date.now });
  try {
    const isReady = async (): Promise<boolean> => (await client.call("ready", {})).ready;
    if (!(await poll(isReady, { everyMs: 100, limitMs: patienceMs }))) throw scratchFailed("it is not ready in time");
    return await buffer(await client.open("backup", {}));
  } finally {
    client.close();
  }
}

function scratchFailed(detail: string): KcoreError {
  return new KcoreError({
    code: "BACKUP_DAMAGED",
    message: "a scratch controller does not serve the state of the backup",
    detail: detail.slice(-4_000),
    hint: "make another backup, and keep this one for a report",
  });
}
