import { parseForeign, type ForeignTree } from "#engine/yaml/foreign.ts";
import { plainOf, type SourceEntry, type SourceNode } from "#engine/yaml/node.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Found } from "./found.ts";
import { expandHosts, type Inventory, type Variables } from "./inventory.ts";

/** An inventory in YAML, or in the JSON that `ansible-inventory --list` and inventory scripts print. @throws KcoreError */
export function readTree(inventory: Inventory, found: Found, file: string, text: string): void {
  const tree = parseForeign(file, text);
  const { root } = tree;
  if (root.kind === "scalar" && root.value === null) return;
  if (root.kind !== "map")
    throw new KcoreError({ code: "ROSTER_IMPORT", message: `${file} is no inventory: a map of groups`, at: root.at });
  const reader = new TreeReader(inventory, found, tree);
  for (const entry of root.entries.values()) {
    if (entry.key === "_meta") reader.hostVariables(entry.value);
    else if (entry.key === "plugin") throw dynamic(file, entry);
    else reader.group(entry);
  }
}

function dynamic(file: string, { value }: SourceEntry): KcoreError {
  return new KcoreError({
    code: "ROSTER_IMPORT",
    message: `${file} configures the inventory plugin “${String(plainOf(value))}”, and names no host`,
    at: value.at,
    hint: `import what it finds: ansible-inventory -i ${file} --list | kcore roster import --from ansible -`,
  });
}

class TreeReader {
  readonly #inventory: Inventory;
  readonly #found: Found;
  readonly #tree: ForeignTree;

  constructor(inventory: Inventory, found: Found, tree: ForeignTree) {
    this.#inventory = inventory;
    this.#found = found;
    this.#tree = tree;
  }

  group({ key: name, keyAt, value }: SourceEntry, depth = 0): void {
    const group = this.#inventory.group(name, keyAt);
    // A script may give just a list of hosts.
    if (value.kind === "list") return this.#hosts(name, value);
    for (const entry of value.kind === "map" ? value.entries.values() : []) {
      if (entry.key === "hosts") this.#hosts(name, entry.value);
      else if (entry.key === "vars") readVariables(group.vars, entry.value, this.#tree);
      else if (entry.key === "children") this.#children(name, entry.value, depth);
      else this.#found.leave(entry.keyAt, `${name}.${entry.key}`, "a group has hosts, vars and children");
    }
  }

  hostVariables(meta: SourceNode): void {
    const variables = meta.kind === "map" ? meta.get("hostvars") : undefined;
    for (const { key, keyAt, value } of variables?.kind === "map" ? variables.entries.values() : [])
      readVariables(this.#inventory.host(key, keyAt).vars, value, this.#tree);
  }

  #hosts(group: string, node: SourceNode): void {
    for (const { name: pattern, at, value } of namesOf(node)) {
      const { names, port } = expandHosts(pattern);
      for (const name of names) {
        const host = this.#inventory.host(name, at);
        this.#inventory.group(group, at).hosts.add(name);
        if (port !== undefined) host.vars.set("ansible_port", { value: port, at });
        if (value) readVariables(host.vars, value, this.#tree);
      }
    }
  }

  #children(group: string, node: SourceNode, depth: number): void {
    for (const { name, at, entry } of namesOf(node)) {
      this.#inventory.group(name, at);
      this.#inventory.group(group, at).children.add(name);
      if (entry && depth < 64) this.group(entry, depth + 1);
    }
  }
}

interface Name {
  readonly name: string;
  readonly at: SourceNode["at"];
  readonly value?: SourceNode;
  readonly entry?: SourceEntry;
}

/** Names as keys of a map, as a list, or one alone. */
function namesOf(node: SourceNode): Name[] {
  if (node.kind === "map")
    return [...node.entries.values()].map((entry) => ({ name: entry.key, at: entry.keyAt, value: entry.value, entry }));
  const items = node.kind === "list" ? node.items : [node];
  return items.flatMap((item) =>
    item.kind === "scalar" && item.value !== null ? [{ name: String(item.value), at: item.at }] : [],
  );
}

/** The variables of a map; those encrypted by Ansible Vault are known by their tag. */
export function readVariables(vars: Variables, node: SourceNode, { tags }: Pick<ForeignTree, "tags">): void {
  for (const { key, keyAt, value } of node.kind === "map" ? node.entries.values() : [])
    vars.set(key, { value: plainOf(value), at: keyAt, isVault: tags.get(value)?.startsWith("!vault") === true });
}
