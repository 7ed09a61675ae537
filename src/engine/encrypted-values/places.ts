import { KcoreError } from "#errors/problem.ts";
import { mapValues, type SourceNode, type SourceScalar } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { isEncrypted, encryptedValue } from "#engine/step/encrypted-value.ts";
import { headerOf } from "./header.ts";

export interface PlacedScalar {
  readonly node: SourceScalar;
  readonly path: readonly string[];
}

/** The scalars of a tree for which `wanted` is true, in the file's order, with paths in the form of {@link itemName}. */
export function scalarsOf(root: SourceNode, wanted: (value: unknown) => boolean): readonly PlacedScalar[] {
  const found: PlacedScalar[] = [];
  const walk = (node: SourceNode, path: readonly string[]): void => {
    if (node.kind === "scalar") {
      if (wanted(node.value)) found.push({ node, path });
    } else if (node.kind === "map") for (const { key, value } of node.entries.values()) walk(value, [...path, key]);
    else for (const [index, item] of node.items.entries()) walk(item, [...path, itemName(item, index)]);
  };
  walk(root, []);
  return found;
}

/** A list item's part of a path: its `id`, which does not depend on its position, else its index. */
export function itemName(item: SourceNode, index: number): string {
  const id = item.kind === "map" ? item.get("id") : undefined;
  return id?.kind === "scalar" && typeof id.value === "string" ? id.value : String(index);
}

/** The values of a tree that are sealed. */
export function sealedIn(root: SourceNode): readonly PlacedScalar[] {
  // A search of the text is cheaper than a walk of a long roster. A back slash counts, since YAML can escape any letter.
  return /age:|AGE|\\/.test(root.file.text) ? scalarsOf(root, isEncrypted) : [];
}

/** The plain values, as `plainOf` gives them; a sealed value becomes a secret that is opened on first use. */
export function plainWithSealed(node: SourceNode): unknown {
  switch (node.kind) {
    case "scalar":
      return isEncrypted(node.value) ? encryptedValue(node.value, node.at) : node.value;
    case "list":
      return node.items.map(plainWithSealed);
    case "map":
      return mapValues(node, plainWithSealed);
  }
}

/** A place in a header's unambiguous form: the file's name in the project, and the keys. */
export function placeText(file: string, path: readonly string[]): string {
  return `${file.split("/").map(encodeURIComponent).join("/")}#${path.map(encodeURIComponent).join("/")}`;
}

/** A place for people: `roster/dc1.yaml nodes.n1.vars.token`. */
export function shownPlace(place: string): string {
  const [file = "", path = ""] = place.split("#");
  const decode = (part: string): string => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return `${decode(file)} ${path.split("/").map(decode).join(".")}`;
}

/** Adds a problem for each sealed value that is incomplete or was sealed for another place. No identity is needed. */
export function checkPlaces(root: SourceNode, problems: Problems): void {
  for (const placed of sealedIn(root)) problems.attempt(() => checkPlace(placed));
}

/** Refuses a sealed value that is incomplete or was sealed for another place. @throws KcoreError SECRET_MISPLACED, SECRET_UNREADABLE */
export function checkPlace({ node, path }: PlacedScalar): void {
  const { place } = locatedHeader(node);
  if (place === undefined || place === placeText(node.file.name, path)) return;
  throw new KcoreError({
    code: "SECRET_MISPLACED",
    message: `the secret that stands here was sealed for another place: ${shownPlace(place)}`,
    at: node.at,
    hint: "seal it for this place: kcore secrets set FILE PATH; or, if a file was renamed: kcore secrets rotate --moved",
  });
}

/** The header of a sealed scalar. @throws KcoreError SECRET_UNREADABLE at its place */
export function locatedHeader(node: SourceScalar): ReturnType<typeof headerOf> {
  try {
    return headerOf(String(node.value));
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    throw new KcoreError(
      error.problems.map((problem) => ({ ...problem, at: node.at })),
      { cause: error },
    );
  }
}

/**
 * The keys that a path such as `nodes.n1.vars.token` names in a file: at each level the longest existing key, since keys
 * may contain dots. A part that does not exist is split at its dots.
 */
export function keysOfPath(root: SourceNode, path: string): readonly string[] {
  const keys: string[] = [];
  let node: SourceNode | undefined = root;
  for (let rest = path; rest !== "";) {
    const fits = childrenOf(node)
      .map(([name]) => name)
      .filter((name) => rest === name || rest.startsWith(`${name}.`));
    const key: string = fits.sort((a, b) => b.length - a.length)[0] ?? rest.split(".", 1)[0] ?? rest;
    keys.push(key);
    node = childOf(node, key);
    rest = rest.slice(key.length + 1);
  }
  return keys;
}

function childrenOf(node: SourceNode | undefined): readonly (readonly [string, SourceNode])[] {
  if (node?.kind === "map") return [...node.entries.values()].map(({ key, value }) => [key, value] as const);
  return node?.kind === "list" ? node.items.map((item, index) => [itemName(item, index), item] as const) : [];
}

/** The value below a node under a key, or under an item's name. */
export function childOf(node: SourceNode | undefined, key: string): SourceNode | undefined {
  return childrenOf(node).find(([name]) => name === key)?.[1];
}

export function valueAt(root: SourceNode, keys: readonly string[]): SourceNode | undefined {
  return keys.reduce<SourceNode | undefined>(childOf, root);
}
