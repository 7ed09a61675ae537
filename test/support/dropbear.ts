import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./ports.ts";
import { startServer, type SshServer, type TestUser } from "./ssh-server.ts";

const run = promisify(execFile);

export interface DropbearOptions {
  /** More arguments of dropbear(8). */
  readonly args?: readonly string[];
  readonly users?: readonly TestUser[];
}

/** Starts a private dropbear on a free loopback port. */
export async function startDropbear({ args = [], users = [] }: DropbearOptions = {}): Promise<SshServer> {
  const port = await freePort();
  return startServer({
    label: "dropbear",
    program: "/usr/sbin/dropbear",
    packageName: "dropbear-bin",
    port,
    users,
    async prepare(folder) {
      const file = join(folder, "host_ed25519");
      const { stdout } = await run("dropbearkey", ["-t", "ed25519", "-f", file]);
      const hostKey = /^(ssh-ed25519 \S+)/m.exec(stdout)?.[1] ?? "";
      return { args: ["-F", "-E", "-s", "-p", `127.0.0.1:${port}`, "-r", file, ...args], hostKey };
    },
  });
}
