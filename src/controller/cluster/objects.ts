import type { ObjectView } from "#api/controller-schemas.ts";
import type { WriteResult } from "#api/schemas.ts";
import { Refused } from "./refused.ts";
import { EncodedJson } from "./encoded-json.ts";
import { asParsed, type ParsedRegister, type Records } from "./records.ts";
import { keys, registerKindOf } from "./registers.ts";
import { recordKinds } from "#api/record-schemas.ts";
import type { Vms } from "./vms.ts";

/** Applied manifests as replicated registers: `object/KIND/NAME`. */
export type Objects = ReturnType<typeof manageObjects>;

export function manageObjects(records: Records, vms: Pick<Vms, "put" | "refuseInUse">) {
  /** `id` is `KIND/NAME`. @throws Refused OBJECT_UNKNOWN, API_INVALID */
  const get = (id: string): ObjectView => {
    const present = records.get("object", objectKey(id));
    if (present) return view(present);
    throw new Refused(404, "OBJECT_UNKNOWN", `there is no ${id}`);
  };
  return {
    /** The objects' views, as text. */
    *list(): Iterable<EncodedJson> {
      // Without parsing: the register's text is the value.
      for (const [key, register] of records.replica.entries("object/")) {
        const { kind, name, dot, at } = view(asParsed(register, undefined));
        if (registerKindOf(key) === "object")
          yield new EncodedJson(`${JSON.stringify({ kind, name, dot, at }).slice(0, -1)},"value":${register.text}}`);
      }
    },
    get,
    async put(id: string, value: Readonly<Record<string, unknown>>): Promise<WriteResult> {
      const key = objectKey(id);
      const { kind, name } = partsOf(key);
      const checked = recordKinds.find((one) => one === kind);
      return checked ? vms.put(checked, name, value) : records.put([{ key, value }]);
    },
    async remove(id: string): Promise<WriteResult> {
      const { kind, name } = get(id);
      const checked = recordKinds.find((one) => one === kind);
      if (checked) vms.refuseInUse(checked, name);
      return records.put([{ key: objectKey(id), value: undefined }]);
    },
  };
}

function objectKey(id: string): string {
  const [, kind, name] = /^([A-Za-z][A-Za-z0-9]{0,62})\/([A-Za-z0-9][A-Za-z0-9._@-]{0,126})$/.exec(id) ?? [];
  if (kind === undefined || name === undefined)
    throw new Refused(400, "API_INVALID", `“${id.slice(0, 80)}” is not KIND/NAME`);
  return keys.object(kind, name);
}

function view({ key, value, dot, at }: ParsedRegister<unknown>): ObjectView {
  return { ...partsOf(key), value, dot, at };
}

function partsOf(key: string): { readonly kind: string; readonly name: string } {
  const [, kind = "", name = ""] = key.split("/");
  return { kind, name };
}
