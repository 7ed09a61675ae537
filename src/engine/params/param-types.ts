import { Secret } from "#engine/step/secret.ts";
import { Duration, ByteSize } from "#engine/step/fields.ts";
import type { SecretReference } from "./secret-reference.ts";
import { Fault } from "#engine/expressions/fault.ts";
import { isMapValue } from "#engine/expressions/members.ts";
import { describeValue, plainOf } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { parseReference } from "./secret-reference.ts";

/** `size` gives bytes, `duration` seconds, `target` the text of a target expression, `secret` a Secret. */
export const typeNames = [
  "string",
  "integer",
  "number",
  "boolean",
  "list",
  "map",
  "enum",
  "size",
  "duration",
  "target",
  "secret",
] as const;
export type ParamType = (typeof typeNames)[number];

interface Typed {
  readonly type: ParamType;
  readonly oneOf?: readonly (string | number)[];
}

/** The value converted to its type. @throws Fault PARAM_INVALID that names the type, never the value of a secret. */
export function coerceValue({ type, oneOf }: Typed, value: unknown): unknown {
  const typed = ofType(type, value);
  if (oneOf !== undefined && !oneOf.includes(typed as string))
    throw new Fault(`must be ${oneOf.join(" or ")}`, { code: "PARAM_INVALID" });
  return typed;
}

function ofType(type: ParamType, value: unknown): unknown {
  switch (type) {
    case "string":
      return value instanceof Secret || typeof value === "string" ? value : refuse("a text", value);
    case "enum":
      return typeof value === "string" || typeof value === "number" ? value : refuse("one of its values", value);
    case "integer":
      return Number.isSafeInteger(value) ? value : refuse("a whole number", value);
    case "number":
      return typeof value === "number" ? value : refuse("a number", value);
    case "boolean":
      return typeof value === "boolean" ? value : refuse("true or false", value);
    case "list":
      return Array.isArray(value) ? value : refuse("a list", value);
    case "map":
      return isMapValue(value) ? value : refuse("a map", value);
    case "size":
      return ByteSize.safeParse(value).data ?? refuse("a size such as 10GiB", value);
    case "duration":
      return Duration.safeParse(value).data ?? refuse("a duration such as 30s or 5m", value);
    case "target":
      return ofTarget(value);
    case "secret":
      return value instanceof Secret ? value : refuse("a secret", value);
  }
}

function ofTarget(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string"))
    return value.join(",");
  return refuse("a target: a node's name, a list of names or an expression such as role:worker", value);
}

/** The value of a text on the command line (`--set name=text`). @throws Fault PARAM_INVALID; errors of parsing a list or map */
export function coerceText({ type, oneOf }: Typed, text: string): unknown {
  switch (type) {
    case "integer":
    case "number": {
      const number = text.trim() === "" ? Number.NaN : Number(text);
      if (!Number.isFinite(number)) throw new Fault("must be a number", { code: "PARAM_INVALID" });
      return coerceValue({ type, ...omitUndefined({ oneOf }) }, number);
    }
    case "boolean":
      if (text === "true" || text === "false") return text === "true";
      throw new Fault("must be true or false", { code: "PARAM_INVALID" });
    case "enum":
      return coerceValue({ type, ...omitUndefined({ oneOf }) }, oneOf?.find((value) => String(value) === text) ?? text);
    case "list":
      return text.trimStart().startsWith("[")
        ? fromYaml(type, text)
        : text === ""
          ? []
          : text.split(",").map((part) => part.trim());
    case "map":
      return fromYaml(type, text);
    case "size":
    case "duration":
      return coerceValue({ type, ...omitUndefined({ oneOf }) }, /^\d+$/.test(text) ? Number(text) : text);
    default:
      return coerceValue({ type, ...omitUndefined({ oneOf }) }, text);
  }
}

function fromYaml(type: ParamType, text: string): unknown {
  return coerceValue({ type }, plainOf(parseSource("--set", text)));
}

/** The reference in a literal given to a parameter of type `secret`. @throws Fault SECRET_LITERAL */
export function referenceOfLiteral(value: unknown): SecretReference {
  const reference = parseReference(value);
  if (reference !== undefined) return reference;
  throw new Fault("must refer to a secret, not hold it", {
    code: "SECRET_LITERAL",
    hint: "write env:NAME, file:PATH or command:CMD, or seal it: kcore secrets set",
  });
}

function refuse(wanted: string, value: unknown): never {
  throw new Fault(`must be ${wanted}, not ${describeValue(value)}`, { code: "PARAM_INVALID" });
}
