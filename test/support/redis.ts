import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { eventually } from "./cluster.ts";
import { freePort } from "./ports.ts";
import { makeTempDir } from "./temp-dir.ts";

/** A Redis of its own on a port of the loopback, with its data in a temporary folder. */
export interface PrivateRedis {
  readonly port: number;
  /** Holds `appendonlydir`. */
  readonly folder: string;
  /** Kills Redis as a power cut would, and resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts Redis on the same data and port. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a redis-server that keeps its data. `users`: lines of its ACL file; `words`: further words of configuration. */
export async function startRedis({
  users = [],
  words = [],
}: {
  readonly users?: readonly string[];
  readonly words?: readonly string[];
} = {}): Promise<PrivateRedis> {
  if (!existsSync("/usr/bin/redis-server")) throw new Error("install the package “redis-server”");
  const port = await freePort("127.0.0.1");
  const dir = await makeTempDir("redis");
  const kept = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction"];
  const acl = join(dir.path, "users.acl");
  if (users.length > 0) {
    writeFileSync(acl, users.map((user) => `user ${user}\n`).join(""));
    kept.push("--aclfile", acl);
  }
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    const address = ["--bind", "127.0.0.1", "--port", String(port), "--dir", dir.path];
    const quiet = ["--pdeathsig", "KILL", "redis-server", ...address, ...kept, ...words];
    child = spawn("setpriv", quiet, { stdio: "ignore" });
    await eventually(() => answers(port));
  };
  const kill = async (): Promise<void> => {
    const ended = child && once(child, "exit");
    child?.kill("SIGKILL");
    await ended;
    child = undefined;
  };
  await start();
  return {
    port,
    folder: dir.path,
    kill,
    start,
    stop: async () => {
      if (child) await kill();
      await dir.remove();
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
