import { randomUUID } from "node:crypto";
import { homedir } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import { addNode, setHostKeys } from "#engine/roster/edit.ts";
import { FACTS_AGE, keptFacts } from "#engine/roster/kept-facts.ts";
import { rosterFileNames } from "#engine/roster/roster-files.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import type { Plain } from "#engine/roster/flow-yaml.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { diskName } from "#engine/step/disk-names.ts";
import { endpointOf } from "#engine/session/node-endpoint.ts";
import { createTransport } from "#engine/transport/connect.ts";
import { parseHostKey, type HostKey } from "#engine/transport/host-key.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { defined } from "#optional/defined.ts";
import { leave } from "../terminal/confirm.ts";
import {
  addFactOptions,
  addProjectOption,
  addResultOption,
  collect,
  type CommonFlags,
  type FactFlags,
} from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { canPrompt, promptLine } from "../terminal/prompt.ts";
import { editRosterFile } from "./edit-roster-file.ts";
import { ownRoster, rosterIfAny } from "./own-roster.ts";
import { printRows } from "../terminal/format-result.ts";

interface ListFlags extends CommonFlags, FactFlags {
  readonly on?: readonly string[];
  readonly output: "table" | "wide" | "json";
}

interface AddFlags extends CommonFlags {
  readonly address?: string;
  readonly port?: number;
  readonly user?: string;
  readonly dc?: string;
  readonly id?: string;
  readonly role?: readonly string[];
  readonly group?: readonly string[];
  readonly label?: readonly string[];
  readonly disk?: readonly string[];
  readonly jump?: readonly string[];
  readonly identityFile?: string;
  readonly file?: string;
}

interface TrustFlags extends CommonFlags {
  readonly replace?: boolean;
  readonly yes?: boolean;
  readonly fingerprint?: string;
}

/** `kcore roster list|check|add|trust`. */
export function rosterCommand(): Command {
  const roster = new Command("roster").description("The machines and how to reach them").addHelpText(
    "after",
    `
Examples:
  kcore roster list --on 'role:worker'
  kcore roster add n1 192.0.2.11 --role controller --disk S3Z8NB0K
  kcore roster trust n1                   show the host key, ask, pin it
  kcore roster trust n1 --replace         after a reinstall
  kcore roster check`,
  );
  addFactOptions(addResultOption(addProjectOption(roster.command("list")), ["table", "wide", "json"]))
    .description("List the nodes")
    .addHelpText("after", "\nExamples:\n  kcore roster list\n  kcore roster list --on 'role:controller' -o wide")
    .option("--on <target>", "only these (repeatable)", collect)
    .action(list);
  addProjectOption(roster.command("check"))
    .description("Read every roster file and tell all that is wrong")
    .addHelpText("after", "\nExamples:\n  kcore roster check")
    .action(check);
  addProjectOption(roster.command("add <name> [address]"))
    .description("Add a node; exactly its own lines change in the file")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore roster add n4 192.0.2.14\n  kcore roster add n5 192.0.2.15 --role controller --dc DC2 --disk S3Z8NB0K",
    )
    .option("--address <address>", "IP address or host name")
    .addOption(new Option("--port <port>", "of sshd").argParser(portOf))
    .option("--user <user>", "to log in as")
    .option("--dc <name>", "its datacenter")
    .option("--id <uuid>", "its id; else a new one")
    .option("--role <role>", "controller, worker, … (repeatable)", collect)
    .option("--group <group>", "a group of the roster (repeatable)", collect)
    .option("--label <key=value>", "(repeatable)", collect)
    .option("--disk <serial>", "a disk for volumes (repeatable)", collect)
    .option("--jump <host>", "go through this node or jump host (repeatable, first hop first)", collect)
    .option("--identity-file <file>", "the private key to log in with")
    .option("--file <file>", "the file to add to; else the only one: roster/NAME.yaml")
    .action(add);
  addProjectOption(roster.command("trust <target>"))
    .description("Show the host key that a node presents and pin it in the roster")
    .addHelpText("after", "\nExamples:\n  kcore roster trust n4\n  kcore roster trust n4 --fingerprint SHA256:…")
    .option("--replace", "also where another key is pinned, as after a reinstall")
    .option("--yes", "pin without asking: only on a network you trust")
    .option("--fingerprint <sha256>", "pin without asking if the key has this fingerprint")
    .action(trust);
  return roster;
}

function portOf(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new InvalidArgumentError("a port is a number from 1 to 65535");
}

function read(project: string | undefined): { readonly root: string; readonly roster: Roster } {
  const root = findProject(project);
  return { root, roster: ownRoster(root) };
}

function list({ project, on = [], output, factsAge = FACTS_AGE, unknownFacts }: ListFlags): void {
  const { root, roster } = read(project);
  const facts = keptFacts({ project: root, since: Date.now() - factsAge, skipUnknown: unknownFacts === "skip" });
  const nodes = on.length > 0 ? matchTargets(on, { ...roster, facts }) : [...roster.nodes.values()];
  const wide = output === "wide";
  const heading = [
    "NAME",
    "ADDRESS",
    "DC",
    "ROLES",
    "KEY",
    ...(wide ? ["USER", "GROUPS", "LABELS", "DISKS", "ID"] : []),
  ];
  const rows = nodes.map((node) => [
    node.name,
    node.transport === "local" ? "(this machine)" : `${node.address}${node.port === 22 ? "" : `:${node.port}`}`,
    node.dc,
    node.roles.join(","),
    node.transport === "local" ? "" : node.hostKeys.length > 0 ? "pinned" : "unknown",
    ...(wide ? wideCells(node) : []),
  ]);
  printRows(nodes, output, heading, rows, "no nodes yet: kcore roster add NAME ADDRESS");
}

function wideCells({ user, groups, labels, disks, id }: NodeEntry): readonly string[] {
  const shownDisks = disks.map((disk) => `${diskName(disk).value}:${disk.use}`);
  const shownLabels = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return [user, groups.join(","), shownLabels.join(","), shownDisks.join(","), id];
}

function check({ project }: CommonFlags): void {
  const { roster } = read(project);
  const unpinned = [...roster.nodes.values()].filter(
    ({ hostKeys, transport }) => transport !== "local" && hostKeys.length === 0,
  );
  process.stdout.write(`${roster.nodes.size} nodes in ${roster.files.join(", ")}: in order\n`);
  if (unpinned.length > 0) {
    const names = unpinned.map(({ name }) => name);
    process.stdout.write(`no host key is pinned for ${names.join(", ")}: kcore roster trust ${names[0] ?? ""}\n`);
  }
}

async function add(name: string, given: string | undefined, flags: AddFlags): Promise<void> {
  const address = given ?? flags.address;
  if (address === undefined)
    throw new KcoreError({
      code: "USAGE",
      message: `the address of ${name} is missing`,
      hint: `kcore roster add ${name} ADDRESS`,
    });
  const root = findProject(flags.project);
  const file = flags.file === undefined ? onlyFile(root) : namedFile(flags.file);
  // What is wrong already is told at its place, and not mixed with what the new node would bring.
  rosterIfAny(root);
  await editRosterFile(root, file, (before) => {
    const text = addNode(before, name, fieldsOf(address, flags));
    try {
      ownRoster(root, { instead: { file, text } });
    } catch (error) {
      if (error instanceof KcoreError) throw notAdded(error, file);
      throw error;
    }
    return text;
  });
  process.stdout.write(`added ${name} to ${file}\n`);
  process.stdout.write(`next: kcore roster trust ${name}\n`);
}

/** The problems of a text that was not written: their places in it are nowhere to be seen. */
function notAdded(error: KcoreError, file: string): KcoreError {
  const problems = error.problems.map(({ at, ...problem }) => ({
    ...problem,
    ...(at && at.file !== file && { at }),
    hint: problem.hint ?? "nothing was added",
  }));
  return new KcoreError(problems, { exitCode: error.exitCode, cause: error });
}

function fieldsOf(address: string, flags: AddFlags): Record<string, Plain> {
  const { id = randomUUID(), port, user, dc, role, group, label, disk, jump, identityFile } = flags;
  const labels = Object.fromEntries(
    (label ?? []).map((pair): [string, string] => {
      const equals = pair.indexOf("=");
      if (equals > 0) return [pair.slice(0, equals), pair.slice(equals + 1)];
      throw new KcoreError({ code: "USAGE", message: `--label ${pair} names no value`, hint: "--label key=value" });
    }),
  );
  return {
    address,
    ...defined({ port, user }),
    id,
    ...defined({ dc, roles: role, groups: group }),
    ...(label ? { labels } : {}),
    ...(disk ? { disks: disk.map((serial) => ({ serial, use: "volumes" })) } : {}),
    ...defined({ jump, identityFile }),
  };
}

function namedFile(given: string): string {
  const name = given.replace(/^roster\//, "");
  if (/^[^./][^/]*\.ya?ml$/.test(name)) return `roster/${name}`;
  throw new KcoreError({
    code: "USAGE",
    message: `${given} cannot be a roster file`,
    hint: "a name that ends in .yaml; it lies in roster/",
  });
}

function onlyFile(project: string): string {
  const names = rosterFileNames(project).filter((name) => name !== "defaults.yaml");
  const [first] = names;
  if (names.length === 1 && first !== undefined) return `roster/${first}`;
  throw new KcoreError({
    code: "USAGE",
    message:
      names.length === 0 ? "roster/ holds no file to add to" : `roster/ holds several files: ${names.join(", ")}`,
    hint: names.length === 0 ? "echo 'nodes: {}' > roster/nodes.yaml" : `name one with --file ${names[0]}`,
  });
}

async function trust(
  target: string,
  { project, replace = false, yes = false, fingerprint }: TrustFlags,
): Promise<void> {
  const { root, roster } = read(project);
  const agentSocket = process.env["SSH_AUTH_SOCK"];
  const transport = createTransport({ home: homedir(), ...defined({ agentSocket }) });
  try {
    for (const node of matchTargets(target, roster)) {
      if (node.transport === "local") continue;
      const found = await transport.scanHostKey(endpointOf(node, roster, askKeyPassphrase));
      await pin(root, roster, node, found, { replace, yes, ...defined({ fingerprint }) });
    }
  } finally {
    await transport.close();
  }
}

async function pin(root: string, roster: Roster, node: NodeEntry, found: HostKey, flags: TrustFlags): Promise<void> {
  const pinned = node.hostKeys.map((text) => parseHostKey(text)).filter((key) => key !== undefined);
  if (pinned.some(({ key }) => key === found.key)) {
    process.stdout.write(`${node.name}  ${found.type} ${found.fingerprint}  pinned already\n`);
    return;
  }
  if (pinned.length > 0 && !flags.replace)
    throw new KcoreError({
      code: "HOST_KEY_CHANGED",
      message: `${node.name} presents ${found.type} ${found.fingerprint}, but ${pinned.map((key) => key.fingerprint).join(", ")} is pinned`,
      hint: `if it was reinstalled: kcore roster trust --replace ${node.name}; else find out why`,
    });
  process.stdout.write(`${node.name} (${node.address})  ${found.type} ${found.fingerprint}\n`);
  for (const key of pinned) process.stdout.write(`  instead of ${key.type} ${key.fingerprint}\n`);
  if (!(await isWanted(found, flags))) {
    process.stdout.write(`  not pinned\n`);
    process.exitCode = exitCodes.failed;
    return;
  }
  const file = roster.positions.get(node.name)?.file ?? onlyFile(root);
  await editRosterFile(root, file, (text) => setHostKeys(text, node.name, [`${found.type} ${found.key}`]));
  process.stdout.write(`  pinned in ${file}\n`);
}

async function isWanted({ fingerprint: found }: HostKey, { yes = false, fingerprint }: TrustFlags): Promise<boolean> {
  if (fingerprint !== undefined) return found === fingerprint;
  if (yes) return true;
  if (!canPrompt())
    throw new KcoreError({
      code: "QUESTION_UNANSWERED",
      message: "nobody is there to compare the host key's fingerprint",
      hint: "run it in a terminal, or give --fingerprint SHA256:…, or --yes on a network you trust",
    });
  const signal = new AbortController().signal;
  const answer = await promptLine({
    text: "  Is this the machine's key? [yes/no]",
    secret: false,
    signal,
    onInterrupt: leave,
  });
  return answer?.trim().toLowerCase() === "yes";
}

/** The passphrase of a key on the way through jump hosts. */
function askKeyPassphrase(file: string): Promise<string | undefined> {
  if (!canPrompt()) return Promise.resolve(undefined);
  const signal = new AbortController().signal;
  return promptLine({ text: `Passphrase of ${file}`, secret: true, signal, onInterrupt: leave });
}
