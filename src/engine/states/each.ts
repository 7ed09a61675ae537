import { scalarText } from "#engine/expressions/helper.ts";
import { entriesOf, isMapValue } from "#engine/expressions/members.ts";

/** The values of `item` in order: a list's items, a map's entries as `{ key, value }`. Undefined for any other value. */
export function itemsOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value as readonly unknown[];
  return isMapValue(value) ? entriesOf(value).map(([key, inner]) => ({ key, value: inner })) : undefined;
}

/** A short name for each item, unique in the list: its text, or its name, id, key, path or serial; else its number. */
export function itemLabels(items: readonly unknown[]): readonly string[] {
  const labels = items.map((item, index) => labelOf(item) ?? String(index + 1));
  const taken = new Set(labels);
  return labels.map((label, index) => {
    if (labels.indexOf(label) === index) return label;
    let own = `${label} ${index + 1}`;
    while (taken.has(own)) own = `${own} ${index + 1}`;
    taken.add(own);
    return own;
  });
}

function labelOf(item: unknown): string | undefined {
  const text = scalarText(item);
  if (text !== undefined) return shortened(text);
  if (!isMapValue(item)) return undefined;
  const entries = new Map(entriesOf(item));
  const found = ["name", "id", "key", "path", "serial"]
    .map((key) => scalarText(entries.get(key)))
    .find((label) => label !== undefined);
  if (found !== undefined) return shortened(found);
  // The helper enumerate wraps a list's item; the label is the item's.
  return entries.has("index") ? labelOf(entries.get("value")) : undefined;
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").replaceAll(/\p{Cc}/gu, "?");
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}
