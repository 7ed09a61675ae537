import type { ModuleDefinition } from "#engine/step/define.ts";
import { argumentsOf, type Argument } from "./arguments.ts";

/** An entry of the search: a module or an action. */
export type Searched = Pick<ModuleDefinition, "name" | "summary" | "alsoKnownAs"> & Parameters<typeof argumentsOf>[0];

/** A found module, and the text that matched. */
export interface Found {
  readonly name: string;
  readonly summary: string;
  /** The best match: `known as lineinfile`, `argument bond.mode`. */
  readonly found: string;
}

/** A text of a module to search in, and its weight in the ranking. */
interface Text {
  readonly text: string;
  readonly weight: number;
  readonly what: string;
}

/**
 * The modules in which each of the words occurs. Modules with the word in their names come first; whole words count
 * more.
 */
export function searchModules(modules: readonly Searched[], words: readonly string[]): readonly Found[] {
  const wanted = words.flatMap((word) => word.toLowerCase().split(/\s+/)).filter((word) => word !== "");
  return modules
    .flatMap((module) => {
      const texts = textsOf(module);
      const best = wanted.map((word) => bestOf(texts, word));
      if (best.length === 0 || best.some(({ score }) => score === 0)) return [];
      const { name, summary } = module;
      const what = [...new Set(best.map((hit) => hit.what))].join(", ");
      return [{ name, summary, found: what, score: best.reduce((sum, hit) => sum + hit.score, 0) }];
    })
    .toSorted((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
    .map(({ name, summary, found }) => ({ name, summary, found }));
}

function textsOf({ name, summary, alsoKnownAs = [], args }: Searched): readonly Text[] {
  return [
    { text: name, weight: 10, what: "name" },
    ...alsoKnownAs.map((text) => ({ text, weight: 8, what: `known as ${text}` })),
    { text: summary, weight: 4, what: "summary" },
    ...argumentsOf({ args }).flatMap((argument) => textsOfArgument(argument, "")),
  ];
}

function textsOfArgument({ name, description, arguments: inner = [] }: Argument, before: string): readonly Text[] {
  const path = `${before}${name}`;
  const what = `argument ${path}`;
  return [
    { text: name, weight: 2, what },
    { text: description, weight: 1, what },
    ...inner.flatMap((field) => textsOfArgument(field, `${path}.`)),
  ];
}

function bestOf(texts: readonly Text[], word: string): { readonly score: number; readonly what: string } {
  return texts
    .map(({ text, weight, what }) => ({ score: weight * fitOf(text.toLowerCase(), word), what }))
    .reduce((best, one) => (one.score > best.score ? one : best), { score: 0, what: "" });
}

/** 4: the word is the text. 3: a word of it. 2: the beginning of one. 1: a part of it, if the word is long enough. */
function fitOf(text: string, word: string): number {
  if (text === word) return 4;
  const parts = [...text.split(/[^a-z0-9]+/), ...text.split(/\s+/).map((part) => part.replace(/[.,;:]$/, ""))];
  if (parts.includes(word)) return 3;
  if (parts.some((part) => part.startsWith(word))) return 2;
  return word.length >= 4 && text.includes(word) ? 1 : 0;
}
