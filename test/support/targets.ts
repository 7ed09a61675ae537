import { execFile, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { descendantsOf } from "./children.ts";
import { makeCpuGroup } from "./cpu-group.ts";
import { hangLimit } from "./limit.ts";
import { freePort } from "./ports.ts";
import { makeAccounts, makeKey } from "./ssh-server.ts";
import { makeTempDir } from "./temp-dir.ts";

const run = promisify(execFile);

/** Real sshds, one for each address, in one process namespace, so that their processes can be counted exactly. */
export interface Targets {
  readonly addresses: readonly string[];
  readonly port: number;
  readonly identityFile: string;
  /** The host key of all sshds, `TYPE BASE64`. */
  readonly hostKey: string;
  /** Waits until the targets run only their sshds. */
  quiet(): Promise<void>;
  /** The number of processes and threads that `work` starts on all targets together, sshd's own included. */
  countStarts(work: () => Promise<unknown>): Promise<number>;
  /**
   * Seconds of CPU of all targets so far, by their cgroup. On machines without one: of running processes and of those that they waited for,
   * to be read when all is quiet.
   */
  cpuSeconds(): number;
  stop(): Promise<void>;
}

/** Starts `count` sshds on 127.0.10.1 and on, all on one port; needs root, for the namespaces. */
export async function startTargets(count: number): Promise<Targets> {
  if (!existsSync("/usr/sbin/sshd")) throw new Error("/usr/sbin/sshd is missing: install the package “openssh-server”");
  if (process.getuid?.() !== 0) throw new Error("the targets need root, for namespaces of their own");
  const dir = await makeTempDir("targets");
  const { path: folder } = dir;
  const [identityFile, hostFile] = [join(folder, "id_ed25519"), join(folder, "host_ed25519")];
  const accounts = await makeAccounts(folder, [], await makeKey(identityFile));
  const hostKey = await makeKey(hostFile);
  const port = await freePort("127.0.10.1");
  const config = [
    `Port ${port}`,
    `HostKey ${hostFile}`,
    "PidFile none",
    "UsePAM no",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
    "MaxStartups 1000",
    "MaxSessions 100",
    "LogLevel ERROR",
    "PrintMotd no",
    "Subsystem sftp internal-sftp",
  ];
  await writeFile(join(folder, "sshd_config"), `${config.join("\n")}\n`);
  await mkdir("/run/sshd", { recursive: true });
  const addresses = Array.from({ length: count }, (_, index) => `127.0.10.${index + 1}`);
  const group = makeCpuGroup();
  const text = `${group?.enter ?? ""}${accounts.map(([from, to]) => `mount --bind ${from} ${to}`).join(" && ")} || exit 1
for address in ${addresses.join(" ")}; do
  /usr/sbin/sshd -D -e -f ${folder}/sshd_config -o ListenAddress=$address 2>>${folder}/log &
done
wait`;
  const words = ["--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", text];
  const child = spawn("setpriv", words, { stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
    await group?.remove();
    await dir.remove();
  };
  try {
    await untilListening(addresses.length, port, () => child.exitCode === null && child.signalCode === null);
  } catch (error) {
    const log = await readFile(join(folder, "log"), "utf8").catch(() => "");
    await stop();
    throw new Error(`the targets' sshds do not listen on port ${port}:\n${log}`, { cause: error });
  }
  // The namespace's first process, which reaps orphans.
  const init = (await descendantsOf(child.pid ?? -1)).find((pid) => numberInside(pid) === 1) ?? -1;
  const space = readlinkSync(`/proc/${init}/ns/pid`);
  const members = () => processesIn(space);
  const quiet = async () => {
    for (const since = performance.now(); members().length > count + 1; await sleep(5))
      if (performance.now() - since > hangLimit) throw new Error("something goes on running on the targets");
  };
  // Pids are given in order within a namespace, so a probe's own pid shows how many processes came before.
  const probe = async () => Number((await run("nsenter", ["-t", String(init), "-p", "sh", "-c", "echo $$"])).stdout);
  return {
    addresses,
    port,
    identityFile,
    hostKey,
    quiet,
    async countStarts(work) {
      await quiet();
      const before = await probe();
      await work();
      await quiet();
      return (await probe()) - before - 1;
    },
    cpuSeconds: () => group?.cpuSeconds() ?? members().reduce((sum, pid) => sum + cpuOf(pid), 0),
    stop,
  };
}

async function untilListening(count: number, port: number, isAlive: () => boolean): Promise<void> {
  const local = new RegExp(`0A007F:${port.toString(16).toUpperCase().padStart(4, "0")} 00000000:0000 0A`, "g");
  for (const end = performance.now() + hangLimit; performance.now() < end && isAlive();) {
    // No connection is tried, since it would start a process.
    const table = await readFile("/proc/net/tcp", "utf8");
    if ((table.match(local)?.length ?? 0) >= count) return;
    await sleep(25);
  }
  throw new Error("not all of them listen");
}

function processesIn(space: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/ns/pid`) === space;
      } catch {
        return false;
      }
    });
}

/** A process's pid in its innermost namespace (proc_pid_status(5), NSpid). */
function numberInside(pid: number): number {
  return Number(/^NSpid:.*\s(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

/** A process's own time and that of the children it has waited for (proc_pid_stat(5), fields 14 to 17, in ticks of 10 ms). */
function cpuOf(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
  } catch {
    return 0;
  }
}
