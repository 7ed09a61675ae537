/** A value to be written as Nix. A text, such as an operator's or a node's, always becomes a Nix string. */
export type NixValue =
  string | number | boolean | NixCode | readonly NixValue[] | { readonly [name: string]: NixValue };

/** Nix code of kcore's own, written unchanged. */
export class NixCode {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** The most characters of a list in one line. */
const widestList = 100;

/** The value as a Nix expression; all lines but the first are indented by `indent`. Texts must not hold NUL, which Nix cannot express. */
export function nixText(value: NixValue, indent = ""): string {
  if (typeof value === "string") return stringText(value, indent);
  if (value instanceof NixCode) return value.text;
  if (typeof value !== "object") return String(value);
  const inner = `${indent}  `;
  if (isList(value)) {
    if (value.length === 0) return "[ ]";
    const short = `[ ${value.map((item) => itemText(item, indent)).join(" ")} ]`;
    const isShort = !short.includes("\n") && short.length <= widestList;
    return isShort ? short : `[\n${value.map((item) => `${inner}${itemText(item, inner)}\n`).join("")}${indent}]`;
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return "{ }";
  return `{\n${entries.map(([name, item]) => `${inner}${assignment([name], item, inner)}\n`).join("")}${indent}}`;
}

/** `a.b."c d" = VALUE;` */
export function assignment(path: readonly string[], value: NixValue, indent = ""): string {
  return `${path.map(nameText).join(".")} = ${nixText(value, indent)};`;
}

/** An item of a list, in parentheses unless it is a simple expression. */
function itemText(item: NixValue, indent: string): string {
  const text = nixText(item, indent);
  const isSimple = item instanceof NixCode ? !/\s/.test(text) : typeof item !== "number" || item >= 0;
  return isSimple ? text : `(${text})`;
}

function isList(value: NixValue): value is readonly NixValue[] {
  return Array.isArray(value);
}

const keywords = new Set(["assert", "else", "if", "in", "inherit", "let", "or", "rec", "then", "with"]);

function nameText(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_'-]*$/.test(name) && !keywords.has(name) ? name : quoted(name);
}

function stringText(text: string, indent: string): string {
  return isBlock(text) ? block(text, `${indent}  `, indent) : quoted(text);
}

const escapes: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]|\$\{/g, "\\$&").replaceAll(/[\n\r\t]/g, (sign) => escapes[sign] ?? sign)}"`;
}

/**
 * Whether a text has several whole lines and means the same between pairs of single quotes, where it is more readable. Nix removes the
 * blanks that all lines begin with, so one line must begin without. A text that would need escapes stays in ordinary quotes.
 */
function isBlock(text: string): boolean {
  if (!/^.+\n.*\n$/s.test(text) || /[^\n\x20-\x7e]|''|\$\{|'\$/.test(text)) return false;
  const lines = text.slice(0, -1).split("\n");
  return lines.every((line) => line === "" || /\S/.test(line)) && lines.some((line) => /^\S/.test(line));
}

function block(text: string, inner: string, indent: string): string {
  const lines = text.slice(0, -1).split("\n");
  return `''\n${lines.map((line) => (line === "" ? "" : `${inner}${line}`)).join("\n")}\n${indent}''`;
}
