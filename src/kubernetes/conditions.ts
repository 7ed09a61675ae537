import { clip } from "./clip.ts";
import { shown } from "./difference.ts";
import type { Condition, KubeObject } from "./objects.ts";

/** What is waited for: a condition, or a field that has a value. */
export type Awaited =
  | { readonly condition: string; readonly status: string }
  | { readonly field: string; readonly value?: string | number | boolean | undefined };

interface Status {
  readonly conditions?: unknown;
  readonly observedGeneration?: number;
}

/** Why an object is not there yet, in words; undefined: it is. */
export function missingOf(object: KubeObject, awaited: Awaited): string | undefined {
  // Objects of kinds that others define have what they like in their status.
  const { conditions: given, observedGeneration } = (object["status"] ?? {}) as Status;
  const conditions = Array.isArray(given) ? (given as readonly Partial<Condition>[]) : [];
  const { generation = 0 } = object.metadata;
  if ("field" in awaited) return missingField(object, awaited);
  const found = conditions.find((each: Partial<Condition> | null) => each?.type === awaited.condition);
  // What a controller said of an older generation is not about this one.
  const seen = found?.observedGeneration ?? observedGeneration;
  if (seen !== undefined && seen < generation) return "its controller has not seen the change yet";
  if (found === undefined) return `it has no condition ${awaited.condition} yet`;
  if (found.status === awaited.status) return undefined;
  const why = [found.reason, found.message].filter((text) => text !== undefined && text !== "").join(": ");
  return `${awaited.condition} is ${clip(String(found.status))}${why === "" ? "" : ` (${clip(why)})`}`;
}

function missingField(object: KubeObject, { field, value }: Extract<Awaited, { field: string }>): string | undefined {
  let found: unknown = object;
  for (const key of field.split("."))
    found = typeof found === "object" && found !== null ? (found as Record<string, unknown>)[key] : undefined;
  const text = found === undefined ? "not there" : shown(found);
  if (value === undefined)
    return found === undefined || found === null || found === "" ? `${field} is ${text}` : undefined;
  return found === value ? undefined : `${field} is ${text}, not ${JSON.stringify(value)}`;
}
