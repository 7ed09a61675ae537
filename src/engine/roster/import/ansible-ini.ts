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
  const tokens = text.match(token) ?? [];
  const words = tokens.filter((one) => one.trim() !== "");
  // Parentheses without a comma make no tuple.
  if (tokens.join("") !== text || words[0] === "," || /\([^,()]+\)/.test(text)) return text;
  try {
    const values = JSON.parse(`[${words.map((_, at) => jsonOf(words, at)).join(" ")}]`) as unknown[];
    return values.length === 1 && words.at(-1) !== "," ? values[0] : values.length === 0 ? text : values;
  } catch {
    return text;
  }
}

/** A string, a number or a word, a sign or a bracket, blanks. */
const token = /[ru]?(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|[\w.]+(?:(?<=[\d.]e)[+-]\d+)?|[-+()[\]{},:]|\s+/gi;
const others = new Map(Object.entries({ True: "true", False: "false", None: "null", "(": "[", ")": "]" }));
const numeral =
  /^(0+|[1-9](_?\d)*|\d(_?\d)*(\.|e[+-]?\d+)|(\d(_?\d)*)?\.\d(_?\d)*(e[+-]?\d+)?|0x[\da-f]+|0o[0-7]+|0b[01]+)$/i;

/** A token of Python's as JSON has it. @throws RangeError at one that JSON has not */
function jsonOf(words: readonly string[], at: number): string {
  const [before = "[", word = "", next = "]"] = [words[at - 1], ...words.slice(at, at + 2)];
  if (/['"]$/.test(word)) return JSON.stringify(stringOf(word));
  if (word === "," && /[\])}]/.test(next) && !/[[({,]/.test(before)) return "";
  if (/^[+-]$/.test(word) && numeral.test(next)) return "";
  if (/^[[\]{},:]$/.test(word)) return word;
  const value = numeral.test(word) ? Number(word.replaceAll("_", "")) : undefined;
  const isExact = value !== undefined && (Number.isSafeInteger(value) || /[.e]/i.test(word));
  const json = isExact ? `${before === "-" ? "-" : ""}${value}` : others.get(word);
  if (json === undefined) throw new RangeError(word);
  return next === ":" ? JSON.stringify(json) : json;
}

/** The text of a string literal of Python's. */
function stringOf(literal: string): string {
  if (/^r/i.test(literal)) return literal.slice(2, -1);
  const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "\\": "\\", "'": "'", '"': '"' };
  return literal
    .replace(/^u?.|.$/gis, "")
    .replaceAll(/\\(?:x([\da-f]{2})|u([\da-f]{4})|(.))/gi, (all, x?: string, u?: string, one?: string) =>
      (x ?? u) === undefined ? (escapes[one ?? ""] ?? all) : String.fromCharCode(Number.parseInt(x ?? u ?? "", 16)),
    );
}
