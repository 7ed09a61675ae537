import type { SourcePosition } from "#errors/problem.ts";

/** A variable of Ansible's, and the line that names it. */
export interface Variable {
  readonly value: unknown;
  readonly at: SourcePosition;
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

/** Hosts and groups as Ansible has them. */
export class Inventory {
  readonly groups = new Map<string, InventoryGroup>();
  readonly hosts = new Map<string, InventoryHost>();

  /** Finds or adds a group; `at` counts for a new one. */
  groupFor(name: string, at: SourcePosition): InventoryGroup {
    const group = this.groups.get(name) ?? { at, vars: new Map(), children: new Set(), hosts: new Set() };
    this.groups.set(name, group);
    return group;
  }

  /** Finds or adds a host; `at` counts for a new one. */
  hostFor(name: string, at: SourcePosition): InventoryHost {
    const host = this.hosts.get(name) ?? { at, vars: new Map() };
    this.hosts.set(name, host);
    return host;
  }

  /** The groups of a host and their parents, outermost first, equal depths by name; without `all`, and without an `ungrouped` that has no variables. */
  groupsOf(host: string): string[] {
    const found = new Set<string>();
    const add = (name: string): void => {
      if (found.has(name)) return;
      found.add(name);
      for (const [parent, { children }] of this.groups) if (children.has(name)) add(parent);
    };
    for (const [name, { hosts }] of this.groups) if (hosts.has(host)) add(name);
    found.delete("all");
    if (!this.groups.get("ungrouped")?.vars.size) found.delete("ungrouped");
    const depths = new Map([...found].map((name) => [name, this.#depth(name)]));
    return [...found].sort((a, b) => (depths.get(a) ?? 0) - (depths.get(b) ?? 0) || (a < b ? -1 : 1));
  }

  #depth(name: string, seen: readonly string[] = []): number {
    if (seen.includes(name)) return 0;
    const parents = [...this.groups].filter(([parent, { children }]) => parent !== "all" && children.has(name));
    return 1 + Math.max(0, ...parents.map(([parent]) => this.#depth(parent, [...seen, name])));
  }
}
