import type { Roster } from "../roster.ts";
import { isAddress } from "../entry-fields.ts";
import { JumpSchema } from "../entry-schema.ts";
import { type Plain, asFlow, asKey } from "../flow-yaml.ts";
import type { Fields, Found, FoundEntry, Hop } from "./found.ts";

/** The contents of a new roster file. */
export interface Draft {
  readonly defaults: Fields;
  readonly groups: ReadonlyMap<string, Fields>;
  readonly nodes: ReadonlyMap<string, Fields>;
  readonly jumps: ReadonlyMap<string, Fields>;
}

/**
 * The imported entries as one file beside the present roster. Routes become names of nodes and jump hosts; entries that the roster
 * has already, or would have twice, are left out and reported.
 */
export function draftRoster(found: Found, roster: Roster, rosterGroups: ReadonlySet<string>): Draft {
  return new RosterDraft(found, roster, rosterGroups).draft();
}

class RosterDraft {
  readonly #found: Found;
  readonly #roster: Roster;
  readonly #rosterGroups: ReadonlySet<string>;
  readonly #jumps = new Map<string, Fields>();
  /** Names of nodes left out as duplicates, each with the name of the entry that stays. */
  readonly #aliases = new Map<string, string>();

  constructor(found: Found, roster: Roster, rosterGroups: ReadonlySet<string>) {
    this.#found = found;
    this.#roster = roster;
    this.#rosterGroups = rosterGroups;
  }

  draft(): Draft {
    const { nodes, groups, defaults, routes } = this.#found;
    this.#leaveOutUnreachable();
    this.#leaveOutDuplicates();
    for (const [fields, { at, hops }] of routes) {
      const names = hops.flatMap((hop) => this.#hopOf(hop, at) ?? []);
      // A route that lacks one of its hops cannot be used.
      if (names.length === hops.length) fields["jump"] = names;
    }
    this.#removeOwnRoutes();
    this.#reportUsers();
    const used = new Set([...nodes.values()].flatMap(({ fields }) => (fields["groups"] ?? []) as readonly string[]));
    for (const name of used)
      if (!groups.has(name) && !this.#rosterGroups.has(name)) groups.set(name, { at: anywhere, fields: {} });
    for (const [name, { at, fields }] of groups)
      if (this.#rosterGroups.has(name)) {
        if (Object.keys(fields).length > 0)
          this.#found.leaveOut(at, `the group ${name}`, "the roster has one of this name: its keys stay as they are");
        groups.delete(name);
      } else if (!used.has(name)) groups.delete(name);
    return { defaults, groups: fieldsOf(groups), nodes: fieldsOf(nodes), jumps: this.#jumps };
  }

  #leaveOutUnreachable(): void {
    for (const [name, { at, fields }] of this.#found.nodes) {
      if (fields["address"] !== undefined || fields["transport"] === "local") continue;
      this.#found.leaveOut(at, `the node ${name}`, "it has no address that can be used");
      this.#found.nodes.delete(name);
      this.#found.routes.delete(fields);
    }
  }

  /** Leaves out nodes whose name, or address with route, the roster or an earlier node has already. */
  #leaveOutDuplicates(): void {
    const machines = new Map<string, string>();
    for (const node of this.#roster.nodes.values())
      machines.set(machineKey(node.address, node.port, node.jump, node.transport), node.name);
    for (const [name, { at, fields }] of this.#found.nodes) {
      const machine = this.#machineKey(fields);
      const twin = this.#roster.nodes.has(name) || this.#roster.jumps.has(name) ? name : machines.get(machine);
      if (twin === undefined) {
        machines.set(machine, name);
        continue;
      }
      const where = this.#roster.positions.get(twin);
      const why = where
        ? `it is in the roster already, at ${where.file}:${where.line}`
        : `it is the same machine as ${twin}`;
      this.#found.leaveOut(at, `the node ${name}`, why);
      this.#aliases.set(name, twin);
      this.#found.nodes.delete(name);
      this.#found.routes.delete(fields);
    }
  }

  #machineKey(fields: Fields): string {
    const route = this.#layersOf(fields)
      .map((layer) => this.#found.routes.get(layer)?.hops)
      .find((hops) => hops !== undefined);
    const address = typeof fields["address"] === "string" ? fields["address"] : "";
    const port = Number(this.#valueOf(fields, "port") ?? 22);
    const isLocal = this.#valueOf(fields, "transport") === "local";
    return machineKey(address, port, route?.map(({ host }) => host) ?? [], isLocal ? "local" : "ssh");
  }

  #valueOf(fields: Fields, key: string): Plain | undefined {
    return this.#layersOf(fields)
      .map((layer) => layer[key])
      .find((value) => value !== undefined);
  }

  /** A node's own keys, then its groups' (the last one first), then the defaults. */
  #layersOf(fields: Fields): readonly Fields[] {
    const groups = ((fields["groups"] ?? []) as readonly string[]).map(
      (name) => this.#found.groups.get(name)?.fields ?? {},
    );
    return [fields, ...groups.reverse(), this.#found.defaults];
  }

  /** The name of a hop: a node of this name or address, else a new jump host; undefined, and reported, without a usable address or name. */
  #hopOf(hop: Hop, at: FoundEntry["at"]): string | undefined {
    const { host, user, port } = hop;
    if (this.#aliases.has(host)) return this.#aliases.get(host);
    if (this.#found.nodes.has(host) || this.#roster.nodes.has(host)) return host;
    for (const [name, { fields }] of this.#found.nodes) {
      const isUser = user === undefined || this.#valueOf(fields, "user") === user;
      const isPort = port === undefined || (this.#valueOf(fields, "port") ?? 22) === port;
      if (fields["address"] === host && isUser && isPort) return name;
    }
    return this.#jumpOf(hop, at);
  }

  #jumpOf({ host, user, port, identityFile }: Hop, at: FoundEntry["at"]): string | undefined {
    const fields: Fields = { address: host };
    for (const [key, value] of Object.entries({ user, port, identityFile }))
      if (value !== undefined) fields[key] = value;
    const known = [...this.#jumps].find(([, one]) => JSON.stringify(one) === JSON.stringify(fields));
    if (known) return known[0];
    if (!isAddress(host) || !JumpSchema.safeParse(fields).success) {
      this.#found.leaveOut(at, `the jump host ${host}`, "it has no address that can be used");
      return undefined;
    }
    const base = this.#found.entryName(host, at, "jump host");
    if (base === undefined) return undefined;
    const isTaken = (name: string): boolean =>
      this.#jumps.has(name) ||
      this.#found.nodes.has(name) ||
      this.#roster.nodes.has(name) ||
      this.#roster.jumps.has(name);
    let name = base;
    for (let next = 2; isTaken(name); next++) name = `${base}-${next}`;
    this.#jumps.set(name, fields);
    return name;
  }

  /** Removes routes of nodes over themselves: a default route applies to the jump host, too. */
  #removeOwnRoutes(): void {
    for (const [name, { fields }] of this.#found.nodes) {
      const jump = this.#valueOf(fields, "jump");
      if (Array.isArray(jump) && jump.includes(name)) fields["jump"] = [];
    }
  }

  /** Reports once that kcore logs in as root where ssh and Ansible use the name of their caller. */
  #reportUsers(): void {
    const unnamed = [...this.#found.nodes].filter(
      ([, { fields }]) => this.#found.asCaller.has(fields) && this.#valueOf(fields, "user") === undefined,
    );
    const [first] = unnamed;
    if (!first) return;
    const names = unnamed.slice(0, 3).map(([name]) => name);
    const more = unnamed.length > 3 ? ` and ${unnamed.length - 3} more` : "";
    this.#found.leaveOut(
      first[1].at,
      `the user of ${names.join(", ")}${more}`,
      "none is named: there it is your own name, here root; defaults: { user: … } says another",
    );
  }
}

const anywhere = { file: "", line: 1, column: 1 };

/** Equal for two entries of one machine. */
function machineKey(address: string, port: number, jump: readonly string[], transport: string): string {
  return JSON.stringify(transport === "local" ? ["local"] : [address.toLowerCase(), port, jump]);
}

function fieldsOf(entries: ReadonlyMap<string, FoundEntry>): Map<string, Fields> {
  return new Map([...entries].map(([name, { fields }]) => [name, fields]));
}

/** Keys of an entry in the order in which an operator writes them; the others come after. */
const order = [
  "address",
  "transport",
  "port",
  "user",
  "identityFile",
  "sudo",
  "jump",
  "hostKeys",
  "id",
  "dc",
  "roles",
  "groups",
  "labels",
];

/** A roster file: one line for each key of an entry, so that later changes are small. */
export function draftText({ defaults, groups, nodes, jumps }: Draft, heading: string): string {
  const first = Object.keys(defaults).length === 0 ? [] : ["defaults:", ...fieldLines(defaults, "  ")];
  const lines = [
    `# ${heading}`,
    ...first,
    ...entryLines("groups", groups),
    ...entryLines("jumps", jumps),
    ...entryLines("nodes", nodes),
  ];
  return `${lines.join("\n")}\n`;
}

function entryLines(name: string, entries: ReadonlyMap<string, Fields>): string[] {
  if (entries.size === 0) return name === "nodes" ? ["nodes: {}"] : [];
  const lines = [...entries].flatMap(([key, fields]) =>
    Object.keys(fields).length === 0 ? [`  ${asKey(key)}: {}`] : [`  ${asKey(key)}:`, ...fieldLines(fields, "    ")],
  );
  return [`${name}:`, ...lines];
}

function fieldLines(fields: Fields, indent: string): string[] {
  const rank = (key: string): number => (order.includes(key) ? order.indexOf(key) : order.length);
  const entries = Object.entries(fields).sort(([a], [b]) => rank(a) - rank(b));
  return entries.map(([key, value]) => `${indent}${asKey(key)}: ${asFlow(value)}`);
}
