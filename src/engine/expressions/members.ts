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

/** The own entries of a map, in order. */
export function entriesOf(
  value: Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>,
): [string, unknown][] {
  return value instanceof Map ? [...(value as ReadonlyMap<string, unknown>)] : Object.entries(value);
}

/** Whether a map has the key as its own; what a prototype has is never seen. */
export function hasMember(value: unknown, key: string): boolean {
  if (value instanceof Map) return value.has(key);
  if (Array.isArray(value)) return /^\d+$/.test(key) && Number(key) < value.length;
  return isMapValue(value) && Object.hasOwn(value, key) && (value as Record<string, unknown>)[key] !== undefined;
}

/**
 * One step along a path. `pathOf` names what `value` is, for the message.
 * @throws Fault EXPRESSION_UNDEFINED for what is not there, UnknownValue for what is not known yet.
 */
export function memberOf(value: unknown, key: string, pathOf: () => string): unknown {
  if (hasMember(value, key)) {
    const found =
      value instanceof Map ? (value as ReadonlyMap<string, unknown>).get(key) : (value as Record<string, unknown>)[key];
    if (found instanceof Unknown) throw new UnknownValue(found);
    return found;
  }
  const path = pathOf();
  if (isMapValue(value)) {
    const names = entriesOf(value).map(([name]) => name);
    throw new Fault(`“${path}” has no “${key}”`, {
      code: "EXPRESSION_UNDEFINED",
      hint: suggestHint(key, names, listNames(names)),
    });
  }
  if (Array.isArray(value))
    throw new Fault(`“${path}” is a list of ${value.length} and has no “${key}”`, {
      code: "EXPRESSION_UNDEFINED",
      hint: "use first, last, length, or #each",
    });
  const is = value instanceof Secret ? "a secret" : describeValue(value);
  throw new Fault(`“${path}” is ${is} and has no “${key}”`, { code: "EXPRESSION_UNDEFINED" });
}

/** “there is a, b, c”: at most a line of names. */
export function listNames(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  return `there is ${names.slice(0, 12).join(", ")}${names.length > 12 ? " …" : ""}`;
}
