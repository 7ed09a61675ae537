import { asFlow, asKey } from "../flow-yaml.ts";
import type { Fields } from "./found.ts";
import type { Draft } from "./settle.ts";

/** Keys of an entry in the order in which a person writes them; the others come after. */
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
  const first = Object.keys(defaults).length === 0 ? [] : ["defaults:", ...linesOf(defaults, "  ")];
  const lines = [`# ${heading}`, ...first, ...part("groups", groups), ...part("jumps", jumps), ...part("nodes", nodes)];
  return `${lines.join("\n")}\n`;
}

function part(name: string, entries: ReadonlyMap<string, Fields>): string[] {
  if (entries.size === 0) return name === "nodes" ? ["nodes: {}"] : [];
  const lines = [...entries].flatMap(([key, fields]) =>
    Object.keys(fields).length === 0 ? [`  ${asKey(key)}: {}`] : [`  ${asKey(key)}:`, ...linesOf(fields, "    ")],
  );
  return [`${name}:`, ...lines];
}

function linesOf(fields: Fields, indent: string): string[] {
  const rank = (key: string): number => (order.includes(key) ? order.indexOf(key) : order.length);
  const entries = Object.entries(fields).sort(([a], [b]) => rank(a) - rank(b));
  return entries.map(([key, value]) => `${indent}${asKey(key)}: ${asFlow(value)}`);
}
