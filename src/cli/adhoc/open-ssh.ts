import { homedir } from "node:os";
import { join } from "node:path";
import { isatty } from "node:tty";
import { replaceFile } from "#base/file.ts";
import { makeFolder } from "#base/folder.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { quote } from "#base/quote.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { reportUnwritable } from "#engine/run/unwritable.ts";
import { recordRuns, trailFolder } from "#engine/run/run-trail.ts";
import { createTransport } from "#engine/transport/connect.ts";
import { usageError } from "#errors/problem.ts";
import { whoAmI } from "../process/who.ts";
import { findProject } from "../project/find-project.ts";
import { machineEndpoint } from "../roster/find-machine.ts";
import { nodeNamed, ownRoster } from "../roster/own-roster.ts";
import { typedCommand } from "../watch/run-request.ts";

export interface SshOptions {
  readonly project?: string;
  /** Become root there. */
  readonly sudo?: boolean;
  /** Print the ssh command to the node, and leave its files there. */
  readonly print?: boolean;
}

/**
 * Logs in to the node, or runs a text of sh there, by this machine's ssh, which takes the place of this process: the terminal, signals and
 * the exit code are its own. @throws KcoreError ROSTER_NODE_UNKNOWN, ROSTER_JUMP, ENDPOINT_INVALID
 */
export async function openSsh(
  name: string,
  command: string | undefined,
  { project: given, sudo = true, print = false }: SshOptions,
): Promise<void> {
  const project = findProject(given);
  const roster = ownRoster(project);
  const entry = nodeNamed(roster, name);
  const isLocal = entry.transport === "local";
  const folder = join(project, ".kcore", "ssh", encodeURIComponent(name));
  if (!isLocal) {
    const agentSocket = process.env["SSH_AUTH_SOCK"];
    const transport = createTransport({ home: homedir(), ...omitUndefined({ agentSocket }) });
    const { config, knownHosts } = await transport.sshFiles(machineEndpoint({ entry, roster }), folder);
    await makeFolder(folder, { mode: 0o700 });
    await replaceFile(join(folder, "known_hosts"), knownHosts);
    await replaceFile(join(folder, "config"), config);
  }
  const ssh = ["ssh", "-F", join(folder, "config")];
  const login = ["--", entry.address];
  if (print) return void process.stdout.write(isLocal ? "sh\n" : `${[...ssh, ...login].map(quote).join(" ")}\n`);
  const entered = { type: "adhoc.started", who: whoAmI(), command: typedCommand(), nodes: [name] } as const;
  reportUnwritable(trailFolder(project), () => recordRuns(project, Date.now(), entered));
  const isRoot = !sudo || (isLocal ? process.getuid?.() === 0 : entry.user === "root");
  const asRoot = command === undefined ? "exec sudo -i" : `exec sudo -- sh -c ${quote(command)}`;
  const remote = isRoot ? command : asRoot;
  const terminal = isatty(0) && isatty(1) ? "-t" : "-T";
  const words = [...ssh, terminal, ...login, ...(remote === undefined ? [] : [remote])];
  const text = isLocal ? (remote ?? 'cd && exec "${SHELL:-/bin/sh}" -l') : `exec ${words.map(quote).join(" ")}`;
  // Node has made these pipes non-blocking, which few programs expect.
  for (const { _handle } of [process.stdout, process.stderr] as readonly {
    _handle?: { setBlocking?(on: true): void };
  }[])
    _handle?.setBlocking?.(true);
  process.execve?.("/bin/sh", ["sh", "-c", text], process.env);
}

/** `kcore exec --tty`: runs a text of sh on the one node that `on` selects, with this terminal. @throws KcoreError USAGE, as {@link openSsh} */
export async function openTerminal(
  command: string,
  { project, on = [] }: { readonly project?: string; readonly on?: readonly string[] },
): Promise<void> {
  const nodes = matchTargets(on, ownRoster(findProject(project)));
  const [node] = nodes;
  if (!node || nodes.length > 1) throw usageError(`--tty is for one node, and --on selects ${nodes.length}`);
  if (!isatty(0) || !isatty(1)) throw usageError("--tty needs a terminal for both input and output");
  return openSsh(node.name, command, omitUndefined({ project }));
}
