import { visible } from "#errors/draw.ts";

// ECMA-48: CSI … final byte, OSC/DCS/SOS/PM/APC … terminator, two-byte escapes; 7-bit and 8-bit forms. The search for a string's
// terminator stops where another sequence begins: otherwise each of many unfinished strings would be searched to the end of the text.
const sequences =
  // oxlint-disable-next-line no-control-regex -- finding control characters is the purpose
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u0090\u0098\u009c-\u009f]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-Z\\-~]/g;

/** Matches if a rule of `cleanText` could change the text. */
// oxlint-disable-next-line no-control-regex -- finding control characters is the purpose
const suspect = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;

/**
 * The text without terminal sequences, and with every other control character but tab and line feed written out (S-4):
 * a node's output can neither drive the operator's terminal nor hide. Carriage returns become line breaks.
 */
export function cleanText(text: string): string {
  if (!suspect.test(text)) return text;
  return visible(text.replace(sequences, "").replace(/\r\n?/g, "\n"));
}

/** As `cleanText`, on one line: for output in which each line begins with a prefix of kcore's. */
export function cleanLine(text: string): string {
  return cleanText(text).replaceAll("\n", " ");
}

/** Applies `cleanText` to every string in a plain JSON value, keys included; the value itself if nothing had to change. */
export function cleanStrings<T>(value: T): T {
  return mapStrings(value, cleanText);
}

/** Rebuilds a plain JSON value with `change` applied to all of its strings; unchanged parts are kept as they are. */
export function mapStrings<T>(value: T, change: (text: string) => string): T {
  return map(value, change) as T;
}

function map(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => map(item, change));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  // Each part is visited once, at any depth; an unchanged part, the usual case, is not copied.
  let changed: [string, unknown][] | undefined;
  const entries = Object.entries(value);
  for (const [index, [key, item]] of entries.entries()) {
    const [newKey, newItem] = [change(key), map(item, change)];
    if (newKey !== key || newItem !== item) changed ??= entries.slice(0, index);
    changed?.push([newKey, newItem]);
  }
  return changed ? Object.fromEntries(changed) : value;
}
