import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { z } from "zod";
import type { SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { mapValues, plainOf, SourceEntry, SourceMap, type SourceNode } from "#engine/yaml/node.ts";
import { plainWithSealed } from "#engine/encrypted-values/places.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { keysAt } from "#engine/yaml/schema-keys.ts";
import { problemsOf } from "#engine/yaml/validate.ts";
import { checkDuplicates, checkJumps } from "./check.ts";
import { EntryName } from "./entry-fields.ts";
import { isNothing, readRosterFiles, type RosterFile, type RosterText } from "./roster-files.ts";
import { sourceOf, type SourceOptions, localHint } from "./sources.ts";
import type { JumpEntry, NodeEntry, Roster } from "./roster.ts";
import { checkOf, type Trust } from "#engine/project/project.ts";
import { JumpSchema, NodeSchema, SharedSchema, type WrittenNode } from "./entry-schema.ts";

export interface LoadOptions {
  /** The users whose files are trusted (S-20); absent: all users. */
  readonly trust?: Trust;
  /** The folder for `~/` in a file's name; the user's home by default. */
  readonly home?: string;
  /** A text in the place of the file on the disk: the roster as it would be after a write. */
  readonly instead?: RosterText;
  /** How programs and addresses in `roster/` are queried. */
  readonly sources?: SourceOptions;
}

/**
 * Reads `roster/*.yaml` of a project, and the answers of its sources. A node's own keys win over its groups' (later groups over earlier
 * ones), these over its file's `defaults`, these over `roster/defaults.yaml`; maps merge, lists replace.
 * @throws KcoreError with every problem of every file at its place; ROSTER_NOT_FOUND
 */
export function loadRoster(project: string, { trust, home, instead, sources }: LoadOptions = {}): Roster {
  const problems = new Problems();
  const files = readRosterFiles(project, problems, trust && checkOf(trust), instead, sources);
  const loader = new Loader(project, files, problems, home);
  const roster = loader.roster();
  checkJumps(roster, loader.jumpPositions, problems);
  checkDuplicates(roster, problems);
  problems.throwIfAny();
  return roster;
}

/** Default values of a jump host. */
const reachDefaults = { port: 22, user: "root", jump: [], hostKeys: [] };
const nodeDefaults = {
  address: "localhost",
  ...reachDefaults,
  sudo: {},
  dc: "DC1",
  roles: [],
  labels: {},
  taints: [],
  groups: [],
  disks: [],
  stateDir: "/var/lib/kcore",
  transport: "ssh",
};

class Loader {
  readonly jumpPositions = new Map<string, SourcePosition>();
  readonly #project: string;
  readonly #files: readonly RosterFile[];
  readonly #problems: Problems;
  readonly #home: string | undefined;
  readonly #groups = new Map<string, SourceEntry>();

  constructor(project: string, files: readonly RosterFile[], problems: Problems, home: string | undefined) {
    this.#project = project;
    this.#files = files;
    this.#problems = problems;
    this.#home = home;
  }

  roster(): Roster {
    this.#collectGroups();
    const positions = new Map<string, SourcePosition>();
    const jumps = this.#jumps(positions);
    const nodes = new Map<string, NodeEntry>();
    for (const file of this.#files)
      for (const entry of file.nodes.values()) {
        if (!this.#registerName(entry, positions, "node")) continue;
        const node = this.#node(entry, file);
        if (node !== undefined) nodes.set(node.name, node);
      }
    return { nodes, jumps, positions, files: this.#files.map(({ name }) => name) };
  }

  #collectGroups(): void {
    const positions = new Map<string, SourcePosition>();
    for (const { defaults, groups } of this.#files) {
      if (defaults !== undefined) this.#check(defaults, SharedSchema);
      for (const entry of groups.values()) {
        if (this.#registerName(entry, positions, "group")) this.#groups.set(entry.key, entry);
        this.#check(entry.value, SharedSchema);
      }
    }
  }

  #jumps(positions: Map<string, SourcePosition>): Map<string, JumpEntry> {
    const jumps = new Map<string, JumpEntry>();
    for (const file of this.#files)
      for (const entry of file.jumps.values()) {
        if (!this.#registerName(entry, positions, "jump host")) continue;
        this.jumpPositions.set(entry.key, entry.keyAt);
        const written = this.#check(entry.value, JumpSchema);
        if (written === undefined) continue;
        jumps.set(entry.key, { name: entry.key, ...reachDefaults, ...this.#withFiles(written) } as JumpEntry);
      }
    return jumps;
  }

  #node(entry: SourceEntry, file: RosterFile): NodeEntry | undefined {
    if (this.#reportWrongIndent(entry, file)) return undefined;
    const own = isNothing(entry.value) ? emptyMap(entry) : entry.value;
    const layers = [...this.#defaults(file), ...this.#groupsOf(own), own];
    const merged = layers.reduce<SourceNode | undefined>((base, over) => mergeNodes(base, over), undefined) ?? own;
    const written = this.#check(merged, NodeSchema);
    if (written === undefined) return undefined;
    const { id = idOfName(entry.key), address, transport } = written;
    if (transport === "local" && sourceOf(file.name) !== file.name) {
      this.#problems.add({
        code: "ROSTER_SOURCE_LIMIT",
        message: `“${entry.key}” comes from ${sourceOf(file.name)} and cannot be this machine itself`,
        at: entry.keyAt,
        hint: localHint,
      });
      return undefined;
    }
    if (address === undefined && transport !== "local") {
      this.#problems.add({
        code: "YAML_KEY_MISSING",
        message: `“${entry.key}” has no address`,
        at: entry.keyAt,
        hint: "give its address, or transport: local for this machine itself",
      });
      return undefined;
    }
    const entryFields = { ...nodeDefaults, ...this.#withFiles(written), id, vars: this.#vars(merged) };
    return { name: entry.key, ...entryFields } as NodeEntry;
  }

  #vars(merged: SourceNode): NodeEntry["vars"] {
    const vars = merged.kind === "map" ? merged.get("vars") : undefined;
    return vars?.kind === "map" ? mapValues(vars, plainWithSealed) : {};
  }

  /** Reports a key of a node (`address: …`) that stands at the column of the node's name, and returns whether the entry is such a key. */
  #reportWrongIndent({ key, keyAt, value }: SourceEntry, { nodes }: RosterFile): boolean {
    if (value.kind === "map" || isNothing(value) || !keysAt(NodeSchema, []).includes(key)) return false;
    const names = [...nodes.values()];
    const above = names
      .slice(
        0,
        names.findIndex((entry) => entry.key === key),
      )
      .findLast((entry) => isNothing(entry.value));
    if (!above) return false;
    this.#problems.add({
      code: "YAML_TYPE",
      message: `“${key}” stands beside “${above.key}”, not in it`,
      at: keyAt,
      hint: `to stand in “${above.key}” it begins at column ${keyAt.column + 2}: “${key}: …”`,
    });
    return true;
  }

  /** The defaults of roster/defaults.yaml, then those of the file itself. */
  #defaults({ name, defaults }: RosterFile): SourceNode[] {
    const [first] = this.#files;
    const common = first?.name === "roster/defaults.yaml" && first.name !== name ? first.defaults : undefined;
    return [common, defaults].filter((node) => node !== undefined);
  }

  #groupsOf(own: SourceNode): SourceNode[] {
    const list = own.kind === "map" ? own.get("groups") : undefined;
    if (list?.kind !== "list") return [];
    return list.items.flatMap((item) => {
      const name = String(item.kind === "scalar" ? item.value : "");
      const group = this.#groups.get(name)?.value;
      if (group !== undefined) return isNothing(group) ? [] : [group];
      const hint = suggestHint(name, this.#groups.keys(), "declare it under groups:");
      this.#problems.add({
        code: "ROSTER_GROUP_UNKNOWN",
        message: `no group “${name}”`,
        at: item.at,
        hint,
      });
      return [];
    });
  }

  /** Registers the name of an entry; false, and reported, if the name is invalid or taken. */
  #registerName(entry: SourceEntry, positions: Map<string, SourcePosition>, what: string): boolean {
    const { key, keyAt } = entry;
    const shape = EntryName.safeParse(key);
    if (!shape.success)
      this.#problems.add({
        code: "ROSTER_INVALID",
        message: `“${key}” cannot name a ${what}: it ${shape.error.issues[0]?.message ?? ""}`,
        at: keyAt,
      });
    const earlier = positions.get(key);
    if (earlier !== undefined)
      this.#problems.add({
        code: "ROSTER_DUPLICATE",
        message: `“${key}” is in the roster already, at ${earlier.file}:${earlier.line}`,
        at: keyAt,
        hint: "names are unique across all roster files",
      });
    else positions.set(key, keyAt);
    return shape.success && earlier === undefined;
  }

  #check<Schema extends z.ZodType>(node: SourceNode, schema: Schema): z.output<Schema> | undefined {
    if (isNothing(node)) return schema.safeParse({}).data;
    const value = plainOf(node);
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    this.#problems.add(...problemsOf(value, node, schema));
    return undefined;
  }

  /** The entry with the paths of its files. */
  #withFiles<Entry extends Pick<WrittenNode, "identityFile" | "consoleLog">>(written: Entry): Entry {
    const { identityFile, consoleLog } = written;
    return {
      ...written,
      ...(identityFile !== undefined && { identityFile: this.#file(identityFile) }),
      ...(consoleLog !== undefined && { consoleLog: this.#file(consoleLog) }),
    };
  }

  #file(path: string): string {
    return path.startsWith("~/") ? join(this.#home ?? homedir(), path.slice(2)) : resolve(this.#project, path);
  }
}

function emptyMap({ file, start, end }: SourceEntry): SourceMap {
  return new SourceMap(file, start, end, new Map());
}

/** Namespace of the ids that are made from names (RFC 9562, version 5): a random UUID. */
const NAMESPACE = Buffer.from("2f0c1b0e7a1d4f5e9a52d6c4a1b7e390", "hex");

/** The id of a node without a written id: always the same for a name (RFC 9562, version 5). */
export function idOfName(name: string): string {
  const hash = createHash("sha1").update(NAMESPACE).update(name).digest().subarray(0, 16);
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Keys whose maps are replaced as a whole: two merged references to secrets would be no reference. */
const ATOMIC = new Set(["sudo.password", "identityPassphrase"]);

/** `over` on top of `base`: maps merge, everything else replaces. Each value keeps the place where it was written. */
function mergeNodes(base: SourceNode | undefined, over: SourceNode, path = ""): SourceNode {
  if (base?.kind !== "map" || over.kind !== "map" || ATOMIC.has(path)) return over;
  const entries = new Map(base.entries);
  for (const [key, entry] of over.entries) {
    const inner = path === "" ? key : `${path}.${key}`;
    const value = mergeNodes(base.get(key), entry.value, inner);
    entries.set(key, new SourceEntry(entry.file, entry.start, entry.end, key, value));
  }
  return new SourceMap(over.file, over.start, over.end, entries, over.flow);
}
