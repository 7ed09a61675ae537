import { isDeepStrictEqual } from "node:util";
import { MASK } from "#engine/step/secret.ts";
import { clip } from "./clip.ts";
import { manager } from "./target.ts";
import type { KubeObject } from "./objects.ts";

/** Lines and characters that a difference shows. */
const LINES = 20;
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
  compare(substance(live), substance(next), [], (path, have, want) => {
    const show = hidden(path) || path.includes(LAST_APPLIED) ? () => MASK : shown;
    found.push(
      `${clip(written(path))}: ${have === undefined ? "none" : show(have)} → ${want === undefined ? "none" : show(want)}`,
    );
  });
  if (found.length === 0 && !isDeepStrictEqual(ownedBy(live), ownedBy(next)))
    return [`the fields that are ${manager}'s`];
  return found.length > LINES ? [...found.slice(0, LINES), `and ${found.length - LINES} more fields`] : found;
}

/** The object without the fields that the server counts by itself. */
function substance({ metadata, ...rest }: KubeObject): unknown {
  const { managedFields: _owners, resourceVersion: _version, generation: _generation, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

/** The fields that were applied by kcore. */
function ownedBy({ metadata: { managedFields = [] } }: KubeObject): unknown {
  return managedFields
    .filter((entry) => entry.manager === manager && entry.operation === "Apply")
    .map(({ fieldsV1 }) => fieldsV1);
}

type Tell = (path: readonly string[], have: unknown, want: unknown) => void;

function compare(have: unknown, want: unknown, path: readonly string[], tell: Tell): void {
  if (isDeepStrictEqual(have, want)) return;
  const [left, right] = [partsOf(have), partsOf(want)];
  if (left === undefined || right === undefined) {
    tell(path, have, want);
    return;
  }
  for (const key of new Set([...left.keys(), ...right.keys()]))
    compare(left.get(key), right.get(key), [...path, key], tell);
}

/** A map's entries, or a list's, by name where all have one; undefined: a single value. */
function partsOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (!Array.isArray(value)) return new Map(Object.entries(value));
  const names = value.map((item: unknown) => (item as { name?: unknown } | null)?.name);
  const areNamed = names.every((name) => typeof name === "string") && new Set(names).size === names.length;
  return new Map(value.map((item: unknown, index) => [`[${areNamed ? String(names[index]) : index}]`, item]));
}

/** `spec.template.spec.containers[web].image` */
function written(path: readonly string[]): string {
  return path
    .map((key) => (key.startsWith("[") ? key : /^[\w-]+$/.test(key) ? `.${key}` : `.“${key}”`))
    .join("")
    .replace(/^\./, "");
}

/** A value in short. */
export function shown(value: unknown): string {
  return clip(JSON.stringify(value), WIDTH);
}
