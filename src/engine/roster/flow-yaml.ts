/** Values that an edit may write. */
export type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain };

/** A value in YAML on one line, as a person would write it; reads back as the same value everywhere. */
export function asFlow(value: Plain): string {
  if (typeof value === "string") return asText(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${(value as readonly Plain[]).map(asFlow).join(", ")}]`;
  const entries = Object.entries(value).map(([key, item]) => `${asKey(key)}: ${asFlow(item as Plain)}`);
  return entries.length === 0 ? "{}" : `{ ${entries.join(", ")} }`;
}

export function asKey(key: string): string {
  return asText(key);
}

/** Unquoted if every YAML reader takes it for this text, also inside `[ ]`; else in double quotes (YAML 1.2.2, 7.3.1). */
function asText(text: string): string {
  const isPlain =
    /^[A-Za-z/][A-Za-z0-9 ._/+=@%~-]*$/.test(text) &&
    !text.endsWith(" ") &&
    !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text);
  const isAddress = /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(text);
  const isUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
  return isPlain || isAddress || isUuid ? text : JSON.stringify(text);
}
