import { clipText } from "./clip.ts";
import { shortValue } from "./difference.ts";
import type { ObjectCondition, KubeObject } from "./objects.ts";

/** A condition with its status, or a field with its value, to wait for; without a value, any value but null and the empty text. */
export type WaitCondition =
  | { readonly condition: string; readonly status: string }
  | { readonly field: string; readonly value?: string | number | boolean | undefined };

interface ObjectStatus {
  readonly conditions?: unknown;
  readonly observedGeneration?: number;
}

/** Why an object does not meet the condition yet, in words; undefined: the object meets it. */
export function missingOf(object: KubeObject, awaited: WaitCondition): string | undefined {
  // The status of custom kinds has any shape.
  const { conditions: given, observedGeneration } = (object["status"] ?? {}) as ObjectStatus;
  const conditions = Array.isArray(given) ? (given as readonly Partial<ObjectCondition>[]) : [];
  const { generation = 0 } = object.metadata;
  if ("field" in awaited) return missingField(object, awaited);
  const found = conditions.find((each: Partial<ObjectCondition> | null) => each?.type === awaited.condition);
  // A condition of an older generation says nothing of this one.
  const seen = found?.observedGeneration ?? observedGeneration;
  if (seen !== undefined && seen < generation) return "its controller has not seen the change yet";
  if (found === undefined) return `it has no condition ${awaited.condition} yet`;
  if (found.status === awaited.status) return undefined;
  const why = [found.reason, found.message].filter((text) => text !== undefined && text !== "").join(": ");
  return `${awaited.condition} is ${clipText(String(found.status))}${why === "" ? "" : ` (${clipText(why)})`}`;
}

function missingField(
  object: KubeObject,
  { field, value }: Extract<WaitCondition, { field: string }>,
): string | undefined {
  let found: unknown = object;
  for (const key of field.split("."))
    found = typeof found === "object" && found !== null ? (found as Record<string, unknown>)[key] : undefined;
  const text = found === undefined ? "not there" : shortValue(found);
  if (value === undefined)
    return found === undefined || found === null || found === "" ? `${field} is ${text}` : undefined;
  return found === value ? undefined : `${field} is ${text}, not ${JSON.stringify(value)}`;
}
