import { isEncrypted } from "#engine/step/encrypted-value.ts";
import { isMapValue } from "#engine/expressions/members.ts";

/**
 * A reference to a secret, read when needed and never stored: `env:NAME`, `file:PATH`, `command:CMD`, or a value sealed with
 * age (`age:BASE64`, engine/step/encrypted-value.ts).
 */
export type SecretReference =
  { readonly env: string } | { readonly file: string } | { readonly command: string } | { readonly age: string };

const KINDS = ["env", "file", "command"] as const;

/**
 * Reads `env:NAME`, `file:PATH`, `command:CMD`, a map with exactly one of these keys, or a sealed value; undefined for anything else,
 * so that a secret itself never passes for a reference.
 */
export function parseReference(value: unknown): SecretReference | undefined {
  if (isEncrypted(value)) return { age: value };
  if (typeof value === "string") {
    const [, kind = "", rest = ""] = /^(env|file|command):\s*(\S[^\0]*)$/.exec(value) ?? [];
    return make(kind, rest);
  }
  if (!isMapValue(value)) return undefined;
  const entries = value instanceof Map ? [...(value as Map<string, unknown>)] : Object.entries(value);
  const [[kind, rest] = [], second] = entries;
  return second === undefined && typeof rest === "string" ? make(kind ?? "", rest) : undefined;
}

function make(kind: string, rest: string): SecretReference | undefined {
  if (rest === "" || !(KINDS as readonly string[]).includes(kind)) return undefined;
  if (kind === "env") return /^[A-Za-z_][A-Za-z0-9_]*$/.test(rest) ? { env: rest } : undefined;
  return kind === "file" ? { file: rest } : { command: rest };
}
