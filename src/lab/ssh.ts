import { readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { existsSync } from "node:fs";
import { poll } from "#base/wait.ts";
import { endLines, mustRun, runCommand, type CommandEnd } from "./run-command.ts";
import { isRunning, nodeFailed } from "./processes.ts";
import type { LabPlace } from "./place.ts";
import { consoleLogOf, type NodeRecord } from "./record.ts";
import { withLock } from "./lock.ts";

/** The private key of all labs. The user root accepts it, on Debian nodes also the users ops and opspw. */
export function identityFileOf({ home }: LabPlace): string {
  return join(home, "id");
}

/** Arguments for ssh(1) that reach a node with its pinned host key, independent of the user's settings. */
export function sshArguments(place: LabPlace, node: NodeRecord, user = "root"): string[] {
  const options = {
    IdentitiesOnly: "yes",
    BatchMode: "yes",
    StrictHostKeyChecking: "yes",
    UserKnownHostsFile: join(node.folder, "known_hosts"),
    GlobalKnownHostsFile: "/dev/null",
    LogLevel: "ERROR",
    ConnectTimeout: "15",
  };
  const list = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  return ["-F", "none", "-i", identityFileOf(place), ...list, `${user}@${node.address}`];
}

/** Runs a command line in the login shell of a node's user. */
export function runOverSsh(
  place: LabPlace,
  node: NodeRecord,
  command: string,
  { user, input, timeout }: { user?: string; input?: string; timeout?: number } = {},
): Promise<CommandEnd> {
  const options = { ...(input === undefined ? {} : { input }), ...(timeout === undefined ? {} : { timeout }) };
  return runCommand("ssh", [...sshArguments(place, node, user), command], options);
}

/** Milliseconds that a node may take to boot. Virtual machines are emulated, and other programs may use the same processors. */
const bootLimits = { debian: 300_000, busybox: 300_000, vm: 600_000 } as const;

/**
 * Waits until a node lets root in over ssh and returns its boot_id. `notBoot`: the boot_id of a boot that does not count, because
 * during a reboot ssh may still answer from it. Throws `LAB_NODE_FAILED` after `timeout` milliseconds, or if the node does not run.
 */
export async function waitForSsh(
  place: LabPlace,
  node: NodeRecord,
  { timeout = bootLimits[node.kind], notBoot }: { timeout?: number; notBoot?: string } = {},
): Promise<string> {
  let reason = "its ssh port does not answer";
  const login = async (): Promise<{ readonly boot?: string } | undefined> => {
    if (!(await isRunning(place, node))) {
      reason = "it does not run";
      return {};
    }
    // The greeting is awaited first: ssh would repeat a lost SYN only after a second, this probe ends after 250 ms.
    if (!(await sendsGreeting(node.address))) return undefined;
    const { code, stdout, stderr } = await runOverSsh(place, node, "cat /proc/sys/kernel/random/boot_id", {
      timeout: 20_000,
    });
    const boot = stdout.trim();
    if (code === 0 && boot !== notBoot) return { boot };
    reason = code === 0 ? "it has not rebooted" : stderr.trim();
    return undefined;
  };
  const { boot } = (await poll(login, { everyMs: 40, limitMs: timeout })) ?? {};
  if (boot !== undefined) return boot;
  throw nodeFailed({
    message: `${node.name} cannot be reached over ssh: ${reason}`,
    detail: endLines(await readFile(consoleLogOf(node), "utf8").catch(() => ""), 5),
    hint: `look at ${node.folder}/console.log`,
  });
}

/** Whether a server sends its greeting. A connection must stand within 250 ms, and its first byte come within 20 s more. */
export function sendsGreeting(host: string, port = 22): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const finish = (answer: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => {
      if (socket.connecting) finish(false);
      else socket.setTimeout(20_000, () => finish(false));
    }, 250);
    socket
      .on("data", () => finish(true))
      .on("end", () => finish(false))
      .on("error", () => finish(false));
  });
}

/** Makes the key pair of the labs on this machine, unless it is there. */
export async function makeKey(place: LabPlace): Promise<void> {
  const file = identityFileOf(place);
  if (existsSync(`${file}.pub`)) return;
  await withLock(place.home, "key", 60, async () => {
    if (existsSync(`${file}.pub`)) return;
    await rm(file, { force: true }); // the public half is written last
    await mustRun("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "kcore-lab", "-f", file]);
  });
}
