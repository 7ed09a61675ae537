import { clip } from "./clip.ts";
import { shown } from "./difference.ts";
import type { Condition, KubeObject } from "./objects.ts";

/** A condition to wait for, or a field that gets a value. */
export type Awaited =
  | { readonly condition: string; readonly status: string }
  | { readonly field: string; readonly value?: string | number | boolean | undefined };

interface Status {
  readonly conditions?: unknown;
  readonly observedGeneration?: number;
}

/** Why an object does not meet the condition yet, in words; undefined: it does. */
export function missingOf(object: KubeObject, awaited: Awaited): string | undefined {
  // The status of custom kinds has any shape.
  const { conditions: given, observedGeneration } = (object["status"] ?? {}) as Status;
  const conditions = Array.isArray(given) ? (given as readonly Partial<Condition>[]) : [];
  const { generation = 0 } = object.metadata;
  if ("field" in awaited) return missingField(object, awaited);
  const found = conditions.find((each: Partial<Condition> | null) => each?.type === awaited.condition);
  // A condition of an older generation says nothing of this one.
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
