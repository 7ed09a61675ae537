import type { ObjectView, Written } from "#api/schemas.ts";
import { Refused } from "./refused.ts";
import { EncodedJson } from "./encoded-json.ts";
import { found, type Found, type Records } from "./records.ts";
import { keys, kindOf } from "./registers.ts";

/** Manifests as replicated records: `object/KIND/NAME`. */
export interface Objects {
  /** The objects' views, as text. */
  readonly list: () => Iterable<EncodedJson>;
  /** `id` is `KIND/NAME`. @throws Refused OBJECT_UNKNOWN, API_INVALID */
  readonly get: (id: string) => ObjectView;
  readonly put: (id: string, value: Readonly<Record<string, unknown>>, ifMatch?: string) => Promise<Written>;
  readonly remove: (id: string, ifMatch?: string) => Promise<Written>;
}

export function manageObjects(records: Records): Objects {
  const get: Objects["get"] = (id) => {
    const present = records.get("object", keyOf(id));
    if (present) return view(present);
    throw new Refused(404, "OBJECT_UNKNOWN", `there is no ${id}`);
  };
  return {
    *list() {
      // The register's text is sent as the value, without parsing every object.
      for (const [key, register] of records.replica.entries("object/")) {
        const { kind, name, dot, at } = view(found(register, undefined));
        if (kindOf(key) === "object")
          yield new EncodedJson(`${JSON.stringify({ kind, name, dot, at }).slice(0, -1)},"value":${register.text}}`);
      }
    },
    get,
    put: (id, value, ifMatch) => records.put([{ key: keyOf(id), value }], ifMatch),
    async remove(id, ifMatch) {
      get(id);
      return records.put([{ key: keyOf(id), value: undefined }], ifMatch);
    },
  };
}

function keyOf(id: string): string {
  const [, kind, name] = /^([A-Za-z][A-Za-z0-9]{0,62})\/([A-Za-z0-9][A-Za-z0-9._@-]{0,126})$/.exec(id) ?? [];
  if (kind === undefined || name === undefined)
    throw new Refused(400, "API_INVALID", `“${id.slice(0, 80)}” is not KIND/NAME`);
  return keys.object(kind, name);
}

function view({ key, value, dot, at }: Found<unknown>): ObjectView {
  const [, kind = "", name = ""] = key.split("/");
  return { kind, name, value, dot, at };
}
