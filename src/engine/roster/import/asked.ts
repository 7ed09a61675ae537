import { isDeepStrictEqual } from "node:util";
import type { Found } from "./found.ts";
import type { Inventory, Variables } from "./inventory.ts";

/** The output of `ansible-inventory --list`: groups by name, and the final variables of each host. */
export type AnsibleAnswer = Readonly<Record<string, unknown>>;

/**
 * Corrects the inventory by Ansible's own answer: replaces a host's values where they differ, and adds missing hosts and groups.
 * Reports each correction. Values encrypted by Ansible Vault stay as read.
 */
export function correct(inventory: Inventory, found: Found, answer: AnsibleAnswer): void {
  const start = { file: "ansible-inventory", line: 1, column: 1 };
  for (const [group, members] of Object.entries(answer))
    for (const host of hostsOf(members)) {
      const known = inventory.hosts.has(host);
      inventory.group(group, start).hosts.add(host);
      inventory.host(host, start);
      if (!known)
        found.leave(start, `the host ${host}`, "only ansible-inventory lists it; it is imported as listed there");
    }
  const { hostvars } = (answer["_meta"] ?? {}) as { hostvars?: Readonly<Record<string, Record<string, unknown>>> };
  for (const [name, told] of Object.entries(hostvars ?? {})) {
    const host = inventory.host(name, start);
    const layers = ["all", ...inventory.groupsOf(name)].map((group) => inventory.groups.get(group)?.vars);
    const read = new Map([...layers, host.vars].flatMap((vars): [string, unknown][] => valuesOf(vars)));
    const wrong = Object.entries(told)
      .map(([key, value]) => [key, withoutMarks(value)] as const)
      .filter(([key, value]) => !isEncrypted(value) && !isDeepStrictEqual(structuredClone(read.get(key)), value));
    for (const [key, value] of wrong) host.vars.set(key, { value, at: host.at });
    const keys = wrong.map(([key]) => key).join(", ");
    if (keys !== "")
      found.leave(host.at, `${keys} of ${name}`, "ansible-inventory reads it otherwise; its values are taken");
  }
}

function hostsOf(group: unknown): readonly string[] {
  const { hosts } = (group ?? {}) as { hosts?: unknown };
  return Array.isArray(hosts) ? hosts.filter((host): host is string => typeof host === "string") : [];
}

function valuesOf(vars: Variables | undefined): [string, unknown][] {
  return [...(vars ?? [])].map(([key, { value }]) => [key, value]);
}

/** Texts that Ansible must not render, tagged `!unsafe`, come in a map of their own. */
function withoutMarks(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutMarks);
  const { __ansible_unsafe: text } = value as { __ansible_unsafe?: unknown };
  return text ?? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withoutMarks(one)]));
}

function isEncrypted(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.hasOwn(value, "__ansible_vault") || Object.values(value).some(isEncrypted);
}
