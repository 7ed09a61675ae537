import type { SourcePosition } from "#errors/problem.ts";

/** A variable of Ansible's: its value, where it stands, and whether it is encrypted. */
export interface Variable {
  readonly value: unknown;
  readonly at: SourcePosition;
  readonly isVault?: boolean;
}

export type Variables = Map<string, Variable>;

export interface InventoryGroup {
  readonly at: SourcePosition;
  readonly vars: Variables;
  readonly children: Set<string>;
  readonly hosts: Set<string>;
}

export interface InventoryHost {
  readonly at: SourcePosition;
  readonly vars: Variables;
}

/** Hosts and groups as Ansible has them, whichever way they were written. */
export class Inventory {
  readonly groups = new Map<string, InventoryGroup>();
  readonly hosts = new Map<string, InventoryHost>();

  group(name: string, at: SourcePosition): InventoryGroup {
    const group = this.groups.get(name) ?? { at, vars: new Map(), children: new Set(), hosts: new Set() };
    this.groups.set(name, group);
    return group;
  }

  host(name: string, at: SourcePosition): InventoryHost {
    const host = this.hosts.get(name) ?? { at, vars: new Map() };
    this.hosts.set(name, host);
    return host;
  }

  /** The groups of a host, those of its groups too, as Ansible merges them: by depth, priority and name, the last one wins. */
  groupsOf(host: string): string[] {
    const found = this.#withParents([...this.groups].flatMap(([name, { hosts }]) => (hosts.has(host) ? [name] : [])));
    found.delete("all");
    if (found.size > 1 || !this.groups.get("ungrouped")?.vars.size) found.delete("ungrouped");
    const rank = (name: string): [number, number] => [this.#depth(name), this.#priority(name)];
    return [...found].sort((a, b) => {
      const [[depthA, priorityA], [depthB, priorityB]] = [rank(a), rank(b)];
      return depthA - depthB || priorityA - priorityB || (a < b ? -1 : 1);
    });
  }

  /** Whether every host of a group is one of another group, too. */
  isBelow(group: string, other: string): boolean {
    return group !== other && (other === "all" || this.#withParents([group]).has(other));
  }

  #withParents(names: readonly string[]): Set<string> {
    const found = new Set<string>();
    const add = (name: string): void => {
      if (found.has(name)) return;
      found.add(name);
      for (const [parent, { children }] of this.groups) if (children.has(name)) add(parent);
    };
    for (const name of names) add(name);
    return found;
  }

  #depth(name: string, seen: readonly string[] = []): number {
    if (seen.includes(name)) return 0;
    const parents = [...this.groups].filter(([parent, { children }]) => parent !== "all" && children.has(name));
    return 1 + Math.max(0, ...parents.map(([parent]) => this.#depth(parent, [...seen, name])));
  }

  #priority(name: string): number {
    return Number(this.groups.get(name)?.vars.get("ansible_group_priority")?.value ?? 1) || 1;
  }
}

/** The names that a pattern stands for: `web[01:10]`, `db-[a:f]`, `n[0:8:2]`; with the port behind a colon. */
export function expandHosts(pattern: string): { readonly names: readonly string[]; readonly port?: number } {
  const [, host = pattern, port] = /^([^:[\]]*(?:\[[^\]]*\][^:[\]]*)*):(\d+)$/.exec(pattern) ?? [];
  const six = /^\[([0-9A-Fa-f:.]{2,45})\](?::(\d+))?$/.exec(pattern);
  if (six?.[1]?.match(/:.*:/)) return { names: [six[1]], ...(six[2] !== undefined && { port: Number(six[2]) }) };
  return { names: expandRanges(host), ...(port !== undefined && { port: Number(port) }) };
}

/** Names that one pattern may stand for. */
const mostNames = 100_000;

function expandRanges(pattern: string): string[] {
  const [range, from, to, step = "1"] = /\[(\w+):(\w+)(?::(\d+))?\]/.exec(pattern) ?? [];
  if (range === undefined || from === undefined || to === undefined) return [pattern];
  const at = pattern.indexOf(range);
  const rest = expandRanges(pattern.slice(at + range.length));
  const names: string[] = [];
  for (const item of rangeOf(from, to, Number(step)))
    for (const tail of rest) {
      if (names.length >= mostNames) return names;
      names.push(`${pattern.slice(0, at)}${item}${tail}`);
    }
  return names.length === 0 ? [pattern] : names;
}

function rangeOf(from: string, to: string, step: number): string[] {
  const isNumber = /^\d+$/.test(from) && /^\d+$/.test(to);
  if (!isNumber && !/^[A-Za-z],[A-Za-z]$/.test(`${from},${to}`)) return [];
  const [start, end] = isNumber ? [Number(from), Number(to)] : [from.charCodeAt(0), to.charCodeAt(0)];
  // Leading zeros say how wide each number is.
  const width = isNumber && from.startsWith("0") ? from.length : 0;
  const count = Math.min(mostNames, Math.max(0, Math.floor((end - start) / Math.max(1, step)) + 1));
  return Array.from({ length: count }, (_, index) => {
    const value = start + index * Math.max(1, step);
    return isNumber ? String(value).padStart(width, "0") : String.fromCharCode(value);
  });
}
