import { randomUUID } from "node:crypto";
import { Command, InvalidArgumentError, Option } from "commander";
import { hostPort } from "#engine/step/host-port.ts";
import { addNode, setNodeFields } from "#engine/roster/edit.ts";
import { FACTS_AGE, keptFacts } from "#engine/roster/kept-facts.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import type { Plain } from "#engine/roster/flow-yaml.ts";
import { sourceOf, type SourceOptions } from "#engine/roster/sources.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { diskName } from "#engine/step/disk-names.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import {
  addFactOptions,
  addProjectOption,
  addResultOption,
  collect,
  type CommonFlags,
  type FactFlags,
} from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { editRosterFile, entryWith, namedFile, onlyFile, ownRoster, rosterIfAny } from "./own-roster.ts";
import { trustCommand } from "./trust-command.ts";
import { importCommand } from "./import-command.ts";
import { userDataCommand } from "./user-data-command.ts";
import { printRows } from "../terminal/format-result.ts";

interface ListFlags extends CommonFlags, FactFlags {
  readonly on?: readonly string[];
  readonly refresh?: boolean;
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

/** `kcore roster list|check|add|adopt|trust|import|user-data`. */
export function rosterCommand(): Command {
  const roster = new Command("roster").description("The machines and how to reach them").addHelpText(
    "after",
    `
Examples:
  kcore roster list --on 'role:worker'
  kcore roster add n1 192.0.2.11 --role controller --disk S3Z8NB0K
  kcore roster trust n1                   show the host key, ask, pin it
  kcore roster trust n1 --replace         after a reinstall
  kcore roster user-data n4 --iso n4.iso  a first boot by cloud-init, with a pinned host key
  kcore roster check`,
  );
  addFactOptions(addResultOption(addProjectOption(roster.command("list")), ["table", "wide", "json"]))
    .description("List the nodes")
    .addHelpText("after", "\nExamples:\n  kcore roster list\n  kcore roster list --on 'role:controller' -o wide")
    .option("--on <target>", "only the nodes of this target (repeatable)", collect)
    .option("--refresh", "ask the programs and addresses in roster/ now, however fresh their last answers are")
    .action(list);
  addProjectOption(roster.command("check"))
    .description("Check every roster file and report all mistakes")
    .addHelpText("after", "\nExamples:\n  kcore roster check")
    .action(check);
  addProjectOption(roster.command("add <name> [address]"))
    .description("Add a node; exactly its own lines change in the file")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore roster add n4 192.0.2.14\n  kcore roster add n5 192.0.2.15 --role controller --dc DC2 --disk S3Z8NB0K",
    )
    .option("--address <address>", "IP address or host name")
    .addOption(new Option("--port <port>", "the port of sshd").argParser(parsePort))
    .option("--user <user>", "the user to log in as")
    .option("--dc <name>", "the node's datacenter")
    .option("--id <uuid>", "the node's id; else a new one")
    .option("--role <role>", "controller, worker, … (repeatable)", collect)
    .option("--group <group>", "a group of the roster (repeatable)", collect)
    .option("--label <key=value>", "a label (repeatable)", collect)
    .option("--disk <serial>", "a disk for volumes (repeatable)", collect)
    .option("--jump <host>", "go through this node or jump host (repeatable, first hop first)", collect)
    .option("--identity-file <file>", "the private key to log in with")
    .option("--file <file>", "the file to add to; else the only one: roster/NAME.yaml")
    .action(add);
  addProjectOption(roster.command("adopt <name> [former-id]"))
    .description("Take a removed node's machine over with its data: a new id, and its disks known by the former one")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore roster adopt n2\n  kcore roster adopt n2 3f0c2a52-6c1b-4c55-9d8e-0d6a4c1f7b21",
    )
    .action(adopt);
  return roster.addCommand(trustCommand()).addCommand(importCommand()).addCommand(userDataCommand());
}

function parsePort(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new InvalidArgumentError("a port is a number from 1 to 65535");
}

function openRoster(
  project: string | undefined,
  sources: SourceOptions = {},
): { readonly root: string; readonly roster: Roster } {
  const root = findProject(project);
  return { root, roster: ownRoster(root, { sources }) };
}

function list({ project, on = [], output, refresh = false, factsAge = FACTS_AGE, unknownFacts }: ListFlags): void {
  const { root, roster } = openRoster(project, { refresh });
  const facts = keptFacts({ project: root, since: Date.now() - factsAge, skipUnknown: unknownFacts === "skip" });
  const nodes = on.length > 0 ? matchTargets(on, { ...roster, facts }) : [...roster.nodes.values()];
  const wide = output === "wide";
  const sourceOfNode = ({ name }: NodeEntry): string => sourceOf(roster.positions.get(name)?.file ?? "");
  // SOURCE is shown by default only if a program or an address provides nodes, too.
  const hasSources = roster.files.some((file) => sourceOf(file) !== file);
  const heading = [
    "NAME",
    "ADDRESS",
    "DC",
    "ROLES",
    "KEY",
    ...(wide ? ["USER", "GROUPS", "LABELS", "DISKS", "ID"] : []),
    ...(wide || hasSources ? ["SOURCE"] : []),
  ];
  const rows = nodes.map((node) => [
    node.name,
    node.transport === "local" ? "(this machine)" : node.port === 22 ? node.address : hostPort(node.address, node.port),
    node.dc,
    node.roles.join(","),
    node.transport === "local" ? "" : node.hostKeys.length > 0 ? "pinned" : "unknown",
    ...(wide ? wideCells(node) : []),
    ...(wide || hasSources ? [sourceOfNode(node)] : []),
  ]);
  const listed = nodes.map((node) => ({ ...node, source: sourceOfNode(node) }));
  printRows(listed, output, heading, rows, "no nodes yet: kcore roster add NAME ADDRESS");
}

function wideCells({ user, groups, labels, disks, id }: NodeEntry): readonly string[] {
  const shownDisks = disks.map((disk) => `${diskName(disk).value}:${disk.use}`);
  const shownLabels = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return [user, groups.join(","), shownLabels.join(","), shownDisks.join(","), id];
}

function check({ project }: CommonFlags): void {
  const { roster } = openRoster(project);
  const unpinned = [...roster.nodes.values()].filter(
    ({ hostKeys, transport }) => transport !== "local" && hostKeys.length === 0,
  );
  process.stdout.write(`${roster.nodes.size} nodes in ${roster.files.map(sourceOf).join(", ")}: in order\n`);
  const roleless = [...roster.nodes.values()].filter(({ roles }) => roles.length === 0).map(({ name }) => name);
  if (roleless.length > 0) process.stdout.write(`${noRoleNote(roleless)}\n`);
  if (unpinned.length > 0) {
    const names = unpinned.map(({ name }) => name);
    process.stdout.write(`no host key is pinned for ${names.join(", ")}: kcore roster trust ${names[0] ?? ""}\n`);
  }
}

/** A note, since a project may use no roles; but no `role:…` target includes such a node. */
function noRoleNote(names: readonly string[]): string {
  return `no role: ${names.join(", ")}; where a stage is for role:controller or role:worker, write roles: [worker] into the entry or a group of it`;
}

async function add(name: string, given: string | undefined, flags: AddFlags): Promise<void> {
  const address = given ?? flags.address;
  if (address === undefined) throw usageError(`the address of ${name} is missing`, `kcore roster add ${name} ADDRESS`);
  const root = findProject(flags.project);
  const file = flags.file === undefined ? onlyFile(root) : namedFile(flags.file);
  // Existing mistakes are reported at their own places first, apart from mistakes of the new node.
  rosterIfAny(root);
  let added: NodeEntry | undefined;
  await editRosterFile(root, file, (before) => {
    const text = addNode(before, name, fieldsOf(address, flags));
    try {
      added = entryWith(root, { file, text }, name);
    } catch (error) {
      if (error instanceof KcoreError) throw withoutPlaces(error, file);
      throw error;
    }
    return text;
  });
  process.stdout.write(`added ${name} to ${file}\n`);
  if (added?.roles.length === 0) process.stdout.write(`${noRoleNote([name])}\n`);
  process.stdout.write(`next: kcore roster trust ${name}\n`);
}

/**
 * Adopts the former id of a machine. The first former id stays first for ever, as the machine's disks were made with it;
 * its certificates may have any of the former ids.
 */
async function adopt(name: string, former: string | undefined, { project }: CommonFlags): Promise<void> {
  const { root, roster } = openRoster(project);
  const node = roster.nodes.get(name);
  const file = roster.positions.get(name)?.file;
  if (!node || file === undefined)
    throw new KcoreError({
      code: "NODE_UNKNOWN",
      message: `no node “${name}” in the roster`,
      ...omitUndefined({ hint: suggestHint(name, [...roster.nodes.keys()]) }),
    });
  const formerIds = [...new Set([...(node.formerIds ?? []), former ?? node.id])];
  const fields = { ...(former === undefined && { id: randomUUID() }), formerIds };
  await editRosterFile(root, file, (before) => {
    const text = setNodeFields(before, name, fields);
    ownRoster(root, { instead: { file, text } });
    return text;
  });
  process.stdout.write(`${name} takes over what kcore made for ${formerIds.join(" and ")} (${file})\n`);
  process.stdout.write(`next: kcore orchestrate deploy_node ${name}\n`);
}

/** The error without the places in `file`, since the text that they point into was not written. */
function withoutPlaces(error: KcoreError, file: string): KcoreError {
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
      throw usageError(`--label ${pair} names no value`, "--label key=value");
    }),
  );
  return {
    address,
    ...omitUndefined({ port, user }),
    id,
    ...omitUndefined({ dc, roles: role, groups: group }),
    ...(label ? { labels } : {}),
    ...(disk ? { disks: disk.map((serial) => ({ serial, use: "volumes" })) } : {}),
    ...omitUndefined({ jump, identityFile }),
  };
}
