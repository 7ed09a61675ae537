import { isDeepStrictEqual } from "node:util";
import type { SourcePosition } from "#errors/problem.ts";
import type { ForeignFile } from "./found.ts";
import type { Inventory, Variables } from "./inventory.ts";

/** The output of `ansible-inventory --list`: groups by name, and the variables of hosts. */
export type InventoryList = Readonly<Record<string, unknown>>;

/** Ansible's own reading of inventories. */
export interface AnsibleAnswer {
  /** Variables where they are set: of groups and of hosts (`--export`). */
  readonly layers: InventoryList;
  /** All variables that each host has in the end. */
  readonly values: InventoryList;
  /** The files that were read. */
  readonly files: readonly ForeignFile[];
  /** Files that Ansible Vault encrypts as a whole. */
  readonly encrypted: readonly string[];
}

/** Finds the line that names a host or a group (`owner`), or one of its variables. */
export type Locate = (owner: string, variable?: string) => SourcePosition;

type Values = Readonly<Record<string, unknown>>;

/** Puts hosts, groups and their variables into the inventory. */
export function readList(inventory: Inventory, list: InventoryList, locate: Locate): void {
  for (const [name, members] of Object.entries(list)) {
    if (name === "_meta") continue;
    const group = inventory.groupFor(name, locate(name));
    // Inventory scripts may give just a list of hosts.
    const { hosts, children, vars } = (Array.isArray(members) ? { hosts: members } : (members ?? {})) as Values;
    for (const host of textsIn(hosts)) {
      inventory.hostFor(host, locate(host));
      group.hosts.add(host);
    }
    for (const child of textsIn(children)) {
      inventory.groupFor(child, locate(child));
      group.children.add(child);
    }
    for (const [key, value] of Object.entries((vars ?? {}) as Values))
      group.vars.set(key, { value: withoutMarks(value), at: locate(name, key) });
  }
  for (const [name, values] of variablesOfHosts(list))
    for (const [key, value] of values)
      inventory.hostFor(name, locate(name)).vars.set(key, { value, at: locate(name, key) });
}

/** Sets a host's own value wherever Ansible's precedence and kcore's order of groups give different ones. */
export function correctValues(inventory: Inventory, list: InventoryList, locate: Locate): void {
  for (const [name, values] of variablesOfHosts(list)) {
    const host = inventory.hostFor(name, locate(name));
    const layers = ["all", ...inventory.groupsOf(name)].map((group) => inventory.groups.get(group)?.vars);
    const layered: Variables = new Map([...layers, host.vars].flatMap((vars) => [...(vars ?? [])]));
    for (const [key, value] of values)
      if (!isDeepStrictEqual(layered.get(key)?.value, value)) host.vars.set(key, { value, at: locate(name, key) });
  }
}

/** Finds names in the inventory's own files: Ansible's list has no line numbers. */
export function locateIn(files: readonly ForeignFile[]): Locate {
  const lines = files.flatMap(({ file, text }) => text.split("\n").map((words, at) => ({ file, line: at + 1, words })));
  const places = new Map<string, number[]>();
  for (const [index, { file, line, words }] of lines.entries()) {
    // The path of group_vars/web/main.yml names its owner.
    const named = line === 1 ? `${file.split(/[/.]/).join(" ")} ${words}` : words;
    for (const word of new Set(named.match(/[\w.-]+/g))) {
      const known = places.get(word);
      if (known) known.push(index);
      else places.set(word, [index]);
    }
  }
  return (owner, variable) => {
    const [start = 0] = places.get(owner) ?? [];
    const named = variable === undefined ? [] : (places.get(variable) ?? []);
    const { file, line } = lines[named.find((at) => at >= start) ?? named[0] ?? start] ?? { file: "", line: 1 };
    return { file, line, column: 1 };
  };
}

function textsIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((item): item is string => typeof item === "string") : [];
}

function variablesOfHosts(list: InventoryList): readonly (readonly [string, readonly [string, unknown][]])[] {
  const { hostvars = {} } = (list["_meta"] ?? {}) as { readonly hostvars?: Readonly<Record<string, Values>> };
  return Object.entries(hostvars).map(([name, values]) => [
    name,
    Object.entries(values).map(([key, value]) => [key, withoutMarks(value)]),
  ]);
}

/** Unwraps texts tagged `!unsafe`, which Ansible's list holds as maps with one key. */
function withoutMarks(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutMarks);
  const { __ansible_unsafe: text } = value as { readonly __ansible_unsafe?: unknown };
  return text ?? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withoutMarks(one)]));
}
