import { Unknown, type Needs } from "#engine/expressions/unknown.ts";
import { Secret } from "#engine/step/secret.ts";

/** Marks an object that stands for a value that JSON does not have. */
const MARK = "$";

type Marked =
  | { readonly $: "unknown"; readonly after: string; readonly needs: Needs; readonly members: unknown }
  | { readonly $: "secret"; readonly value: string }
  | { readonly $: "map"; readonly entries: readonly (readonly [unknown, unknown])[] }
  | { readonly $: "set"; readonly items: readonly unknown[] }
  | { readonly $: "undefined" }
  | { readonly $: "object"; readonly entries: Readonly<Record<string, unknown>> };

/** A value of a run as plain JSON. It holds secrets in clear, so it may only travel encrypted. */
export function toJson(value: unknown): unknown {
  if (value === undefined) return { [MARK]: "undefined" };
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(toJson);
  if (value instanceof Unknown) {
    const { after, needs, members } = value;
    return { [MARK]: "unknown", after, needs, members: toJson(members) };
  }
  if (value instanceof Secret) return { [MARK]: "secret", value: value.reveal() };
  if (value instanceof Map)
    return { [MARK]: "map", entries: [...value].map(([key, one]) => [toJson(key), toJson(one)]) };
  if (value instanceof Set) return { [MARK]: "set", items: [...value].map(toJson) };
  const entries = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, toJson(one)]));
  return Object.hasOwn(entries, MARK) ? { [MARK]: "object", entries } : entries;
}

/** The value of which {@link toJson} made this JSON. */
export function fromJson(json: unknown): unknown {
  if (typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return json.map(fromJson);
  if (Object.hasOwn(json, MARK)) return unmarked(json as Marked);
  return objectOf(json as Readonly<Record<string, unknown>>);
}

function unmarked(marked: Marked): unknown {
  switch (marked.$) {
    case "undefined":
      return undefined;
    case "unknown":
      return new Unknown(marked.after, marked.needs, fromJson(marked.members) as Unknown["members"]);
    case "secret":
      return new Secret(marked.value);
    case "map":
      return new Map(marked.entries.map(([key, one]) => [fromJson(key), fromJson(one)]));
    case "set":
      return new Set(marked.items.map(fromJson));
    case "object":
      return objectOf(marked.entries);
  }
}

/** Without a prototype, as the outputs of stages are: no name of a value is one that every object has. */
function objectOf(entries: Readonly<Record<string, unknown>>): unknown {
  const read = Object.entries(entries).map(([key, one]) => [key, fromJson(one)] as const);
  return Object.assign(Object.create(null) as Record<string, unknown>, Object.fromEntries(read));
}
