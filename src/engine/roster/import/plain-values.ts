import type { Plain } from "../flow-yaml.ts";

/** Whether a value is, or holds, an expression of Jinja. */
export function hasJinja(value: unknown): boolean {
  if (typeof value === "string") return /\{\{|\{%/.test(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).some(hasJinja);
}

/** A value as a roster may hold it; undefined where it, or a part of it, cannot stand there. */
export function plainValue(value: unknown): Plain | undefined {
  if (value === null) return null;
  if (typeof value === "string") return value.includes("\0") ? undefined : value;
  if (typeof value === "boolean") return value;
  if (typeof value === "number")
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value)) ? value : undefined;
  if (Array.isArray(value)) {
    const items = value.map(plainValue);
    return items.some((item) => item === undefined) ? undefined : (items as Plain[]);
  }
  if (typeof value !== "object") return undefined;
  const entries = Object.entries(value).map(([key, item]): [string, Plain | undefined] => [key, plainValue(item)]);
  const isPlain = entries.every(([key, item]) => item !== undefined && !isForbidden(key));
  return isPlain ? (Object.fromEntries(entries) as Record<string, Plain>) : undefined;
}

/** Whether the roster's YAML refuses a key. */
export function isForbidden(key: string): boolean {
  return forbidden.has(key);
}

const forbidden: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype", "<<"]);

/** `yes`, `True`, 1: values that Ansible and Salt take for true. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 1 || /^(true|yes|on|y|t|1)$/i.test(typeof value === "string" ? value : "");
}

/** A text of digits, such as a port in quotes, as a number; any other value unchanged. */
export function asNumber(value: unknown): unknown {
  return typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
}

/** A text, number or boolean as a text; the empty text for any other value. */
export function plainText(value: unknown): string {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}
