import { isDeepStrictEqual } from "node:util";
import { MASK } from "#engine/step/secret.ts";
import { clipText } from "./clip.ts";
import { fieldManager } from "./target.ts";
import type { KubeObject } from "./objects.ts";

/** The maximum number of fields that a difference shows. */
const MOST_FIELDS = 20;
/** The maximum number of characters of a value. */
const WIDTH = 80;

/** kubectl's annotation with the last applied object, a Secret's values included. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** The changes that an apply would make, as lines; empty: none. `hidden`: paths whose values are not shown. */
export function differences(
  live: KubeObject,
  next: KubeObject,
  hidden: (path: readonly string[]) => boolean,
): readonly string[] {
  const found: string[] = [];
  compare(withoutCounters(live), withoutCounters(next), [], (path, have, want) => {
    const show = hidden(path) || path.includes(LAST_APPLIED) ? () => MASK : shortValue;
    found.push(
      `${clipText(pathText(path))}: ${have === undefined ? "none" : show(have)} → ${want === undefined ? "none" : show(want)}`,
    );
  });
  if (found.length === 0 && !isDeepStrictEqual(appliedFields(live), appliedFields(next)))
    return [`the fields that are ${fieldManager}'s`];
  return found.length > MOST_FIELDS
    ? [...found.slice(0, MOST_FIELDS), `and ${found.length - MOST_FIELDS} more fields`]
    : found;
}

/** The object without the fields that the server counts by itself. */
function withoutCounters({ metadata, ...rest }: KubeObject): unknown {
  const { managedFields: _owners, resourceVersion: _version, generation: _generation, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

/** The entries of `managedFields` for kcore's applies. */
function appliedFields({ metadata: { managedFields = [] } }: KubeObject): unknown {
  return managedFields
    .filter((entry) => entry.manager === fieldManager && entry.operation === "Apply")
    .map(({ fieldsV1 }) => fieldsV1);
}

type OnDifference = (path: readonly string[], have: unknown, want: unknown) => void;

function compare(have: unknown, want: unknown, path: readonly string[], onDifference: OnDifference): void {
  if (isDeepStrictEqual(have, want)) return;
  const [left, right] = [partsOf(have), partsOf(want)];
  if (left === undefined || right === undefined) {
    onDifference(path, have, want);
    return;
  }
  for (const key of new Set([...left.keys(), ...right.keys()]))
    compare(left.get(key), right.get(key), [...path, key], onDifference);
}

/** The entries of a map or list; of a list by their names if all items have different ones. Undefined for any other value. */
function partsOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (!Array.isArray(value)) return new Map(Object.entries(value));
  const names = value.map((item: unknown) => (item as { name?: unknown } | null)?.name);
  const areNamed = names.every((name) => typeof name === "string") && new Set(names).size === names.length;
  return new Map(value.map((item: unknown, index) => [`[${areNamed ? String(names[index]) : index}]`, item]));
}

/** A path as text: `spec.template.spec.containers[web].image`. */
function pathText(path: readonly string[]): string {
  return path
    .map((key) => (key.startsWith("[") ? key : /^[\w-]+$/.test(key) ? `.${key}` : `.“${key}”`))
    .join("")
    .replace(/^\./, "");
}

/** The beginning of a value as JSON. */
export function shortValue(value: unknown): string {
  return clipText(JSON.stringify(value), WIDTH);
}
