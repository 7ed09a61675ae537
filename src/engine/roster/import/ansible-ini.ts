import type { SourcePosition } from "#errors/problem.ts";
import type { Found } from "./found.ts";
import { expandHosts, type Inventory, type Variables } from "./inventory.ts";
import { beforeComment, splitWords } from "./ssh-options.ts";

/**
 * An inventory in Ansible's INI, which is no standard one: hosts with variables on a line, sections `[group]`,
 * `[group:vars]` and `[group:children]` (“How to build your inventory”, and the plugin ini).
 */
export function readIni(inventory: Inventory, found: Found, file: string, text: string): void {
  let [group, kind] = ["ungrouped", "hosts"];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const words = line.trim();
    const at = { file, line: index + 1, column: line.length - line.trimStart().length + 1 };
    if (words === "" || /^[#;]/.test(words)) continue;
    const section = /^\[([^:\]\s]+)(?::(\w+))?\]\s*(?:[#;].*)?$/.exec(words);
    if (section) [group, kind] = [section[1] ?? "", section[2] ?? "hosts"];
    if (section) inventory.group(group, at);
    else if (kind === "vars") readVariable(inventory.group(group, at).vars, found, words, at);
    else if (kind === "children") addChild(inventory, group, words, at);
    else if (kind === "hosts") readHost(inventory, found, group, words, at);
    else found.leave(at, `a line of [${group}:${kind}]`, "Ansible knows hosts, vars and children");
  }
}

function addChild(inventory: Inventory, group: string, words: string, at: SourcePosition): void {
  const [name = ""] = words.split(/[\s#]/, 1);
  inventory.group(name, at);
  inventory.group(group, at).children.add(name);
}

function readVariable(vars: Variables, found: Found, words: string, at: SourcePosition): void {
  const [, name, value] = /^([^=\s]+)\s*=\s*(.*)$/.exec(words) ?? [];
  if (name === undefined || value === undefined)
    return found.leave(at, "a line of variables", "a variable is NAME=VALUE");
  // Python drops a comment only after a literal; after a bare word the comment is part of the text.
  const code = beforeComment(value).trim();
  const literal = literalOf(code);
  vars.set(name, { value: literal === code ? value : literal, at });
}

function readHost(inventory: Inventory, found: Found, group: string, words: string, at: SourcePosition): void {
  const [pattern = "", ...pairs] = splitWords(beforeComment(words));
  const { names, port } = expandHosts(pattern);
  for (const name of names) {
    const { vars } = inventory.host(name, at);
    inventory.group(group, at).hosts.add(name);
    if (port !== undefined) vars.set("ansible_port", { value: port, at });
    for (const pair of pairs) {
      const equals = pair.indexOf("=");
      if (equals > 0) vars.set(pair.slice(0, equals), { value: literalOf(pair.slice(equals + 1)), at });
      else found.leave(at, `a word behind ${name}`, "a variable is NAME=VALUE, quoted if it has spaces");
    }
  }
}

/** A value as Python's literal_eval reads it, as far as inventories use it; else the text. */
function literalOf(text: string): unknown {
  const words: Readonly<Record<string, unknown>> = { True: true, False: false, None: null };
  if (Object.hasOwn(words, text)) return words[text];
  if (/^[+-]?((0|[1-9](_?\d)*)(\.\d+)?(e[+-]?\d+)?|0x[\da-f]+|0o[0-7]+|0b[01]+)$/i.test(text)) {
    const [, sign, digits = ""] = /^([+-]?)(.*)$/.exec(text.replaceAll("_", "")) ?? [];
    const value = sign === "-" ? -Number(digits) : Number(digits);
    return Number.isSafeInteger(value) || /[.e]/i.test(text) ? value : text;
  }
  const [, single, double] = /^(?:'([^']*)'|"([^"]*)")$/.exec(text) ?? [];
  if (single !== undefined || double !== undefined) return single ?? double;
  if (!/^[[{].*[\]}]$/s.test(text) || text.startsWith("{{")) return text;
  const json = text
    .replaceAll(/'([^'"]*)'/g, '"$1"')
    .replaceAll(/\b(True|False|None)\b/g, (word) => String(words[word]));
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return text;
  }
}
