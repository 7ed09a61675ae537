import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../ports.ts";
import { makeTempDir } from "../temp-dir.ts";
import { fixtures, type Table } from "./table.ts";

/** The folder of a case, and its machine if the table asks for one. */
export interface CasePlace {
  /** The case's folder, `$DIR` in tables. */
  readonly dir: string;
  /** The harness's own folder beside it. */
  readonly own: string;
  /** The port of the table's server, `$PORT` in tables. */
  readonly port: number;
  /** The command for a shell on the case's machine. */
  readonly shell: (shell: string) => string;
  /** Runs a sh text as root. @throws an Error with its output if it fails */
  readonly sh: (text: string) => void;
  readonly write: (path: string, text: string) => void;
  /** The text of a file; undefined if it does not exist. */
  readonly read: (path: string) => string | undefined;
  readonly remove: () => Promise<void>;
}

/** Covers this machine's files except /tmp, /proc, /sys and /dev by an overlay, in namespaces with which all writes are lost. */
const cover = [
  "mount -t tmpfs none /mnt",
  "mkdir /mnt/upper /mnt/work /mnt/root",
  "mount -t overlay none -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root",
  "for place in proc sys dev tmp; do mount --rbind /$place /mnt/root/$place || exit; done",
  "exec chroot /mnt/root sh -c 'echo ready; read -r end'",
].join(" && ");

export async function makeCasePlace({ machine, server }: Pick<Table, "machine" | "server">): Promise<CasePlace> {
  const temp = await makeTempDir("case");
  const [dir, own] = [join(temp.path, "dir"), join(temp.path, "own")];
  for (const folder of [dir, own]) mkdirSync(folder);
  const child = machine === undefined ? undefined : await makeMachine();
  const port = server === undefined ? 0 : await freePort();
  const serving = server === undefined ? undefined : await serve(server, port, dir);
  const enter =
    child === undefined ? [] : ["nsenter", `--target=${child.pid}`, "--mount", "--net", "--uts", "--root", "--wd"];
  const at = (path: string): string => (child === undefined ? path : `/proc/${child.pid}/root${path}`);
  return {
    dir,
    own,
    port,
    shell: (shell) => [...enter, shell].join(" "),
    sh: (text) => {
      const [program, ...words] = [...enter, "sh", "-ec", `cd ${dir}\n${text}`];
      const { status, stdout, stderr } = spawnSync(program, words, { encoding: "utf8" });
      if (status !== 0) throw new Error(`sh: ${text}\nended with ${status}\n${stdout}${stderr}`);
    },
    write: (path, text) => {
      mkdirSync(dirname(at(path)), { recursive: true });
      writeFileSync(at(path), text);
    },
    read: (path) => (existsSync(at(path)) ? readFileSync(at(path), "utf8") : undefined),
    remove: async () => {
      // The server writes into the folder until it ends.
      if (serving?.kill()) await once(serving, "exit");
      if (child !== undefined) {
        const ended = once(child, "exit");
        child.stdin?.end();
        await ended;
      }
      await temp.remove();
    },
  };
}

async function makeMachine(): Promise<ChildProcess> {
  const child = spawn("unshare", ["--mount", "--net", "--uts", "sh", "-c", cover], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [word] = (await Promise.race([once(child.stdout, "data"), once(child, "exit")])) as [unknown];
  if (String(word).trim() !== "ready") throw new Error(`no machine of its own could be made: ${String(word)}`);
  return child;
}

/** A server in a process of its own, since a case blocks the event loop while its shells run. */
async function serve(command: string, port: number, dir: string): Promise<ChildProcess> {
  const env = { ...process.env, PORT: String(port), DIR: dir, FIXTURES: fixtures };
  const child = spawn("sh", ["-c", `exec ${command}`], { stdio: ["ignore", "ignore", "inherit"], env });
  while (!(await listens(port))) {
    if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode}`);
    await sleep(10);
  }
  return child;
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
      .once("connect", () => resolve(socket.destroy() === socket))
      .once("error", () => resolve(false));
  });
}
