import { suggestHint } from "#errors/suggest.ts";
import { Secret } from "#engine/step/secret.ts";
import { Fault } from "./fault.ts";
import { describeValue } from "#engine/yaml/node.ts";
import { Unknown, UnknownValue } from "./unknown.ts";

/** Whether a value is a map: a plain object or a Map; never a list, a secret or anything with behaviour. */
export function isMapValue(value: unknown): value is Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown> {
  if (value instanceof Map) return true;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

export function entriesOf(
  value: Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>,
): [string, unknown][] {
  return value instanceof Map ? [...(value as ReadonlyMap<string, unknown>)] : Object.entries(value);
}

/** Whether a map has the key, or a list the index; keys of prototypes do not count. */
export function hasMember(value: unknown, key: string): boolean {
  if (value instanceof Map) return value.has(key);
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(key) && Number(key) < value.length;
  return isMapValue(value) && Object.hasOwn(value, key) && (value as Record<string, unknown>)[key] !== undefined;
}

/**
 * The member of a map or list. `describePath`: the path of `value`, for the message.
 * @throws Fault EXPRESSION_UNDEFINED for a missing member, UnknownValue for a member that is not known yet.
 */
export function memberOf(value: unknown, key: string, describePath: () => string): unknown {
  if (hasMember(value, key)) {
    const found =
      value instanceof Map ? (value as ReadonlyMap<string, unknown>).get(key) : (value as Record<string, unknown>)[key];
    if (found instanceof Unknown) throw new UnknownValue(found);
    return found;
  }
  const path = describePath();
  if (isMapValue(value)) {
    const names = entriesOf(value).map(([name]) => name);
    throw new Fault(`“${path}” has no “${key}”`, {
      code: "EXPRESSION_UNDEFINED",
      hint: suggestHint(key, names, listNames(names)),
    });
  }
  if (Array.isArray(value)) throw notInList(path, key, value.length);
  const is = value instanceof Secret ? "a secret" : describeValue(value);
  throw new Fault(`“${path}” is ${is} and has no “${key}”`, { code: "EXPRESSION_UNDEFINED" });
}

function notInList(path: string, key: string, length: number): Fault {
  const has = length === 0 ? "is an empty list" : `is a list of ${length}`;
  if (!/^\d+$/.test(key))
    return new Fault(`“${path}” ${has} and has no “${key}”`, {
      code: "EXPRESSION_UNDEFINED",
      hint: "an index from 0, first, last, length, or #each",
    });
  return new Fault(`“${path}” ${has} and has no item ${key}`, {
    code: "EXPRESSION_UNDEFINED",
    hint: `${length === 0 ? "" : `its items are 0 to ${length - 1}; `}default ${path}.${key} 'y' gives another value`,
  });
}

/** The hint “there is a, b, c”, with at most twelve names. */
export function listNames(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  return `there is ${names.slice(0, 12).join(", ")}${names.length > 12 ? " …" : ""}`;
}
