import { isIP } from "node:net";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { parseEndpoint } from "#api/endpoint.ts";
import { addNode } from "#engine/roster/edit.ts";
import { rosterFileNames } from "#engine/roster/roster-paths.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import { endpointOf } from "#engine/session/node-endpoint.ts";
import { createTransport, type Transport } from "#engine/transport/connect.ts";
import { questionText } from "#errors/three-tries.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { KcoreError } from "#errors/problem.ts";
import { entryWith, rosterIfAny, readRosterText } from "./own-roster.ts";
import { kcoreHome } from "../process/kcore-home.ts";
import { leave } from "../terminal/ask-operator.ts";
import { findProject } from "../project/find-project.ts";
import { canPrompt, promptLine } from "../terminal/prompt.ts";

const agentPort = 9091;

/** The machine that `--node` names, and its entry in the roster. */
export interface Machine {
  /** Absolute path of the project. */
  readonly project: string;
  /** The host as the operator gave it, without the port. */
  readonly host: string;
  readonly roster: Roster;
  /** The machine's entry; outside of the roster, its address with the roster's defaults. */
  readonly entry: NodeEntry;
  readonly isInRoster: boolean;
  /** Tells the operator which port is used. */
  readonly note: string;
}

/**
 * The machine of `--node HOST[:PORT]`. Port 9091, the agent's, stands for the SSH port of the roster, or 22; any other port is the
 * SSH port itself. @throws KcoreError USAGE, and for a roster with mistakes
 */
export function findMachine(node: string | undefined, projectFlag: string | undefined, identityFile?: string): Machine {
  if (node === undefined || node === "")
    throw new KcoreError({ code: "USAGE", message: "no machine is named", hint: "--node HOST:9091" });
  const { host, port } = parseEndpoint(node, agentPort);
  const project = findProject(projectFlag);
  const roster = rosterIfAny(project);
  const known = [...roster.nodes.values()].find(
    ({ name, address, port: own }) => [name, address].includes(host) && (port === agentPort || port === own),
  );
  const key =
    identityFile === undefined ? {} : { identityFile: resolve(project, identityFile.replace(/^~(?=\/)/, homedir())) };
  const entry = { ...(known ?? draftEntry(project, host, port, roster)), ...key };
  const isInRoster = known !== undefined;
  return { project, host, roster, entry, isInRoster, note: portNote(entry, port, isInRoster) };
}

/** The entry of a new machine: its address, with the defaults of the file for new nodes. */
function draftEntry(project: string, host: string, port: number, roster: Roster): NodeEntry {
  const usual = usualName(host);
  const name = roster.nodes.has(usual) ? `${usual}-new` : usual;
  const file = fileForNew(project, roster);
  const fields = { address: host, ...(port === agentPort ? {} : { port }) };
  const text = addNode({ file, text: readRosterText(project, file) }, name, fields);
  return entryWith(project, { file, text }, name);
}

/**
 * The file for a new entry: the only file, or `nodes.yaml` if there is none; of several, `nodes.yaml`, else the file
 * with the last node.
 */
export function fileForNew(project: string, { positions }: Roster): string {
  const names = rosterFileNames(project).filter((name) => name !== "defaults.yaml");
  const [only = "nodes.yaml"] = names;
  if (names.length <= 1) return `roster/${only}`;
  return names.includes("nodes.yaml")
    ? "roster/nodes.yaml"
    : ([...positions.values()].at(-1)?.file ?? `roster/${only}`);
}

function portNote({ name, address, port, user }: NodeEntry, givenPort: number, isInRoster: boolean): string {
  const source = isInRoster ? `as the roster says of ${name}` : "the usual one";
  const why = givenPort === agentPort ? `port ${agentPort} is the agent's: this machine is reached by SSH` : "by SSH";
  return `${address}: ${why}, as ${user}, port ${port} (${givenPort === agentPort ? source : "as given"})`;
}

/** The file with pinned keys of machines that are in no roster yet. */
export function ownKnownHosts(): string {
  return join(kcoreHome(), "known_hosts");
}

/** Runs `work` with a transport that also accepts keys that were pinned before the machine had a roster entry. */
export async function withTransport<Result>(work: (transport: Transport) => Promise<Result>): Promise<Result> {
  const home = homedir();
  const agentSocket = process.env["SSH_AUTH_SOCK"];
  const transport = createTransport({
    home,
    ...(agentSocket === undefined ? {} : { agentSocket }),
    knownHostsFiles: knownHostsFiles(),
  });
  try {
    return await work(transport);
  } finally {
    await transport.close();
  }
}

/** The known_hosts files of this user and machine, kcore's own first. */
export function knownHostsFiles(): readonly string[] {
  return [ownKnownHosts(), join(homedir(), ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"];
}

/** The machine's endpoint, with its jump hosts. @throws KcoreError ROSTER_JUMP */
export function machineEndpoint({ entry, roster }: Pick<Machine, "entry" | "roster">): Endpoint {
  return endpointOf(entry, roster, askKeyPassphrase);
}

/** Asks for the passphrase of a key on the route; undefined without a terminal. */
async function askKeyPassphrase(file: string, _: unknown, again = false): Promise<string | undefined> {
  if (!canPrompt()) return undefined;
  const signal = new AbortController().signal;
  return promptLine({ text: questionText(`Passphrase of ${file}`, again), secret: true, signal, onInterrupt: leave });
}

/** The name of a machine without a given one: `kvm-node-192-0-2-11` for an address, else the host name's first label. */
export function usualName(host: string): string {
  return isIP(host) === 0 ? (host.split(".")[0] ?? host).toLowerCase() : `kvm-node-${host.replaceAll(/[.:]+/g, "-")}`;
}
