import type { ObjectView, Written } from "#api/schemas.ts";
import { Refused } from "./refused.ts";
import type { Found, Records } from "./records.ts";
import { keys } from "./registers.ts";

/** Manifests as replicated records: `object/KIND/NAME`. */
export interface Objects {
  readonly list: () => ObjectView[];
  /** `id` is `KIND/NAME`. @throws Refused OBJECT_UNKNOWN, API_INVALID */
  readonly get: (id: string) => ObjectView;
  readonly put: (id: string, value: Readonly<Record<string, unknown>>, ifMatch?: string) => Promise<Written>;
  readonly remove: (id: string, ifMatch?: string) => Promise<Written>;
}

export function manageObjects(records: Records): Objects {
  const get: Objects["get"] = (id) => {
    const found = records.get("object", keyOf(id));
    if (found) return view(found);
    throw new Refused(404, "OBJECT_UNKNOWN", `there is no ${id}`);
  };
  return {
    list: () => records.list("object", "object/").map(view),
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
