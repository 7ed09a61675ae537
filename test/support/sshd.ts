import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "./ports.ts";
import { makeKey, startServer, type ServerPlan, type SshServer, type TestUser } from "./ssh-server.ts";

export interface SshdOptions {
  /** More lines of sshd_config(5), in place of the usual lines for the same keywords. */
  readonly config?: readonly string[];
  readonly users?: readonly TestUser[];
  /** Types of host keys, ssh-keygen's names; the first one is pinned. */
  readonly hostKeyTypes?: readonly string[];
  readonly port?: number;
  readonly binds?: NonNullable<ServerPlan["binds"]>;
}

/** Starts a private OpenSSH server on a free loopback port. */
export async function startSshd({
  config = [],
  users = [],
  hostKeyTypes = ["ed25519"],
  port,
  binds = [],
}: SshdOptions = {}): Promise<SshServer> {
  const listen = port ?? (await freePort());
  return startServer({
    label: "sshd",
    program: "/usr/sbin/sshd",
    packageName: "openssh-server",
    port: listen,
    users,
    binds,
    async prepare(folder) {
      const publicKeys: string[] = [];
      const lines = [...config, `Port ${listen}`, "ListenAddress 127.0.0.1"];
      for (const type of hostKeyTypes) {
        const file = join(folder, `host_${type}`);
        publicKeys.push(await makeKey(file, type));
        lines.push(`HostKey ${file}`);
      }
      // For some keywords (MaxStartups) not the first value counts, so a test's line replaces the usual line.
      const given = new Set(config.map((line) => line.split(/\s/)[0]));
      const usual = [
        "PidFile none",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "MaxStartups 100:30:200",
        "LogLevel VERBOSE",
        "PrintMotd no",
      ];
      lines.push(...usual.filter((line) => !given.has(line.split(" ")[0])));
      const file = join(folder, "sshd_config");
      await writeFile(file, `${lines.join("\n")}\n`);
      return { args: ["-D", "-e", "-f", file], hostKey: publicKeys[0] ?? "" };
    },
  });
}
