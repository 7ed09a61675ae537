import { factCatalogue, type FactDescription } from "./catalogue.ts";
import { factTree } from "./shape.ts";

export type FactValue = string | number | boolean;

/** Matches a fact's path: an index, `*` or nothing for `N`, any name for `NAME`, and perhaps an index after a list of texts. */
function patternOf(name: string, isTexts: boolean): RegExp {
  const parts = name
    .split(".")
    .map((part, index) =>
      part === "N"
        ? String.raw`(?:\.(?:\d+|\*))?`
        : part === "NAME"
          ? String.raw`\..+`
          : `${index > 0 ? "\\." : ""}${part}`,
    );
  return new RegExp(`^${parts.join("")}${isTexts ? String.raw`(?:\.\d+)?` : ""}$`, "u");
}

const leaves = factCatalogue.map((fact) => ({ fact, pattern: patternOf(fact.name, fact.type === "texts") }));
const groups = [
  ...new Set(
    factCatalogue.flatMap(({ name }) => name.split(".").map((_, index, parts) => parts.slice(0, index).join("."))),
  ),
]
  .filter(Boolean)
  .map((name) => patternOf(name, false));

/** The fact at this path, such as `os.id`, `disks.0.bytes` or, for all items, `disks.bytes`; undefined if there is none. */
export function factAt(path: string): FactDescription | undefined {
  return leaves.find(({ pattern }) => pattern.test(path))?.fact;
}

/** Whether the path names a fact, or a group of facts such as `network`. */
export function isFactPath(path: string): boolean {
  return factAt(path) !== undefined || groups.some((pattern) => pattern.test(path));
}

/** The value at the path; undefined if there is none. A map's key may contain dots. */
export function selectFact(value: unknown, path: string): unknown {
  if (path === "") return value;
  if (typeof value !== "object" || value === null) return undefined;
  for (let at = path.indexOf("."); ; at = path.indexOf(".", at + 1)) {
    const key = at === -1 ? path : path.slice(0, at);
    if (Object.hasOwn(value, key))
      return selectFact((value as Record<string, unknown>)[key], at === -1 ? "" : path.slice(at + 1));
    if (at === -1) return undefined;
  }
}

/** Every single value at the path; a list without an index, and `*`, give those of all items. */
export function factValues(value: unknown, path: string): readonly FactValue[] {
  if (typeof value !== "object" || value === null)
    return path === "" && value !== null && value !== undefined ? [value as FactValue] : [];
  if (Array.isArray(value) && !/^\d+(?:\.|$)/.test(path))
    return value.flatMap((item) => factValues(item, path.replace(/^\*(?:\.|$)/, "")));
  if (path === "") return [];
  if (/^\*(?:\.|$)/.test(path)) return Object.values(value).flatMap((item) => factValues(item, path.slice(2)));
  const head = [...path.matchAll(/\.|$/g)].find(({ index }) => Object.hasOwn(value, path.slice(0, index)))?.index;
  if (head === undefined) return [];
  return factValues((value as Record<string, unknown>)[path.slice(0, head)], path.slice(head + 1));
}

/** The tree of fact names, by which expressions are checked before a node's facts are known. */
export const factMembers = factTree(() => true);
