import { spawn, type ChildProcess } from "node:child_process";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Endpoint } from "#engine/transport/host.ts";
import { descendantsOf, signalProcess } from "./children.ts";
import { hangLimit } from "./limit.ts";
import { makeTempDir, type TempDir } from "./temp-dir.ts";

const run = promisify(execFile);

/** A user of a test server beside root, in a passwd(5) of the server's own. */
export interface TestUser {
  readonly name: string;
  /** The login shell, by default `/bin/sh`. */
  readonly shell?: string;
}

/** A real SSH server on a loopback port, with keys of its own. */
export interface SshServer {
  readonly port: number;
  /** The folder with its keys, log and homes. */
  readonly folder: string;
  /** The file of a private key with which every user may log in. */
  readonly identityFile: string;
  /** The server's host key, `TYPE BASE64`. */
  readonly hostKey: string;
  /** The home of a user. */
  home(user: string): string;
  /** An endpoint for root, with the server's key pinned; `fields` replace others. */
  endpoint(fields?: Partial<Endpoint>): Endpoint;
  /** The server's log. */
  log(): Promise<string>;
  /** Kills the server's processes (SIGKILL), except their sessions' children; returns the number. */
  dropSessions(): Promise<number>;
  stop(): Promise<void>;
}

export interface ServerPlan {
  readonly label: string;
  readonly program: string;
  readonly packageName: string;
  readonly port: number;
  readonly users: readonly TestUser[];
  /** More files and folders of the server's own: `[FILE, SYSTEM FILE]` each. */
  readonly binds?: readonly (readonly [string, string])[];
  /** Makes the host key's files in the server's folder; returns the server's arguments and the public host key. */
  prepare(folder: string): Promise<{ args: readonly string[]; hostKey: string }>;
}

/** Makes a key pair without passphrase; returns the public half as `TYPE BASE64`. */
export async function makeKey(file: string, type = "ed25519", passphrase = "", extra: string[] = []): Promise<string> {
  await run("ssh-keygen", ["-q", "-t", type, "-N", passphrase, "-C", "test", "-f", file, ...extra]);
  return (await readFile(`${file}.pub`, "utf8")).split(" ").slice(0, 2).join(" ");
}

/** Starts a server with passwd, shadow and homes of its own, in a mount namespace; needs root. */
export async function startServer(plan: ServerPlan): Promise<SshServer> {
  if (!existsSync(plan.program))
    throw new Error(`${plan.program} is missing: install the package “${plan.packageName}” to run this test`);
  if (process.getuid?.() !== 0) throw new Error("the test's SSH servers need root, for a mount namespace of their own");
  const dir = await makeTempDir(plan.label);
  const { path: folder } = dir;
  let child: ChildProcess | undefined;
  try {
    const identityFile = join(folder, "id_ed25519");
    const publicKey = await makeKey(identityFile);
    const accounts = await makeAccounts(folder, plan.users, publicKey);
    const { args, hostKey } = await plan.prepare(folder);
    await mkdir("/run/sshd", { recursive: true });
    const binds = [...accounts, ...(plan.binds ?? [])].map(([from, to]) => `mount --bind ${from} ${to}`).join(" && ");
    child = spawn(
      "unshare",
      [
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        `${binds} && exec setpriv --pdeathsig KILL "$@" 2>>${folder}/log`,
        "sh",
        plan.program,
        ...args,
      ],
      { stdio: "ignore" },
    );
    await untilListening(child, plan.port, folder);
    return makeHandle({ dir, child, plan, identityFile, hostKey });
  } catch (error) {
    child?.kill("SIGKILL");
    await dir.remove();
    throw error;
  }
}

/** Makes passwd, shadow and shells for root and these users, who all accept one key. Returns `[FILE, SYSTEM FILE]` for each. */
export async function makeAccounts(
  folder: string,
  users: readonly TestUser[],
  publicKey: string,
): Promise<[string, string][]> {
  const passwd = [`root:x:0:0:root:${folder}/home/root:/bin/sh`, "sshd:x:101:65534::/run/sshd:/usr/sbin/nologin"];
  const shadow = ["root:*:19000:0:99999:7:::", "sshd:!:19000::::::"];
  for (const [index, { name, shell = "/bin/sh" }] of users.entries()) {
    passwd.push(`${name}:x:${3000 + index}:65534::${folder}/home/${name}:${shell}`);
    shadow.push(`${name}:*:19000:0:99999:7:::`);
  }
  await mkdir(join(folder, "home"), { mode: 0o755 });
  for (const [index, name] of ["root", ...users.map((user) => user.name)].entries()) {
    const home = join(folder, "home", name);
    const id = index === 0 ? 0 : 2999 + index;
    await mkdir(join(home, ".ssh"), { recursive: true, mode: 0o700 });
    await writeFile(join(home, ".ssh", "authorized_keys"), `${publicKey}\n`, { mode: 0o600 });
    await run("chown", ["-R", `${id}:65534`, home]);
  }
  await writeFile(join(folder, "passwd"), `${passwd.join("\n")}\n`);
  await writeFile(join(folder, "shadow"), `${shadow.join("\n")}\n`, { mode: 0o600 });
  // dropbear accepts only listed shells.
  const shells = ["/bin/sh", "/bin/dash", "/bin/bash", ...users.flatMap(({ shell }) => (shell ? [shell] : []))];
  await writeFile(join(folder, "shells"), `${shells.join("\n")}\n`);
  // mkdtemp made the folder 0700: the users must pass through to their homes.
  await run("chmod", ["711", folder]);
  return ["passwd", "shadow", "shells"].map((name) => [join(folder, name), `/etc/${name}`]);
}

async function untilListening(child: ChildProcess, port: number, folder: string): Promise<void> {
  for (const end = performance.now() + hangLimit; performance.now() < end;) {
    if (child.exitCode !== null || child.signalCode !== null) break;
    // No connection is tried, since servers under test count connections.
    const tcp = await readFile("/proc/net/tcp", "utf8");
    if (tcp.includes(`0100007F:${port.toString(16).toUpperCase().padStart(4, "0")} 00000000:0000 0A`)) return;
    await sleep(25);
  }
  const log = await readFile(join(folder, "log"), "utf8").catch(() => "");
  throw new Error(`the SSH server does not listen on port ${port}:\n${log}`);
}

interface Parts {
  readonly dir: TempDir;
  readonly child: ChildProcess;
  readonly plan: ServerPlan;
  readonly identityFile: string;
  readonly hostKey: string;
}

function makeHandle({ dir, child, plan, identityFile, hostKey }: Parts): SshServer {
  const folder = dir.path;
  // The server's own processes: children of a session run on, as after a lost connection.
  const servers = async () => {
    const found: number[] = [];
    for (const pid of await descendantsOf(child.pid ?? -1)) {
      const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "");
      if (/^(sshd|dropbear)/.test(name.trim())) found.push(pid);
    }
    return found;
  };
  return {
    port: plan.port,
    folder,
    identityFile,
    hostKey,
    home: (user) => join(folder, "home", user),
    endpoint: (fields = {}) => ({
      name: plan.label,
      transport: "ssh",
      address: "127.0.0.1",
      port: plan.port,
      user: "root",
      identityFile,
      hostKeys: [hostKey],
      jump: [],
      ...fields,
    }),
    log: () => readFile(join(folder, "log"), "utf8"),
    async dropSessions() {
      const pids = await servers();
      for (const pid of pids) signalProcess(pid, "SIGKILL");
      return pids.length;
    },
    async stop() {
      const below = await descendantsOf(child.pid ?? -1);
      const ended = child.exitCode ?? child.signalCode;
      const exited = ended === null ? new Promise((resolve) => child.once("exit", resolve)) : undefined;
      child.kill("SIGKILL");
      await exited;
      for (const pid of below) signalProcess(pid, "SIGKILL");
      await dir.remove();
    },
  };
}
