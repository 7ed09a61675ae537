import type { ModuleDefinition } from "#engine/step/define.ts";
import { listArguments, type Argument } from "./arguments.ts";

/** A module or an action, as the search reads it. */
export type SearchEntry = Pick<ModuleDefinition, "name" | "summary" | "alsoKnownAs"> &
  Parameters<typeof listArguments>[0];

/** A module or action that was found, and where the words occur in it. */
export interface SearchResult {
  readonly name: string;
  readonly summary: string;
  /** The best match of each word: `known as lineinfile`, `argument bond.mode`. */
  readonly found: string;
}

/** A text of a module, its weight in the ranking, and its kind as results name it. */
interface SearchText {
  readonly text: string;
  readonly weight: number;
  readonly what: string;
}

/** The entries in which every word occurs, best first: names count most, and whole words more than parts. */
export function searchModules(modules: readonly SearchEntry[], words: readonly string[]): readonly SearchResult[] {
  const wanted = words.flatMap((word) => word.toLowerCase().split(/\s+/)).filter((word) => word !== "");
  return modules
    .flatMap((module) => {
      const texts = searchTexts(module);
      const best = wanted.map((word) => bestMatch(texts, word));
      if (best.length === 0 || best.some(({ score }) => score === 0)) return [];
      const { name, summary } = module;
      const what = [...new Set(best.map((hit) => hit.what))].join(", ");
      return [{ name, summary, found: what, score: best.reduce((sum, hit) => sum + hit.score, 0) }];
    })
    .toSorted((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
    .map(({ name, summary, found }) => ({ name, summary, found }));
}

function searchTexts({ name, summary, alsoKnownAs = [], args }: SearchEntry): readonly SearchText[] {
  return [
    { text: name, weight: 10, what: "name" },
    ...alsoKnownAs.map((text) => ({ text, weight: 8, what: `known as ${text}` })),
    { text: summary, weight: 4, what: "summary" },
    ...listArguments({ args }).flatMap((argument) => argumentTexts(argument, "")),
  ];
}

function argumentTexts({ name, description, arguments: inner = [] }: Argument, before: string): readonly SearchText[] {
  const path = `${before}${name}`;
  const what = `argument ${path}`;
  return [
    { text: name, weight: 2, what },
    { text: description, weight: 1, what },
    ...inner.flatMap((field) => argumentTexts(field, `${path}.`)),
  ];
}

function bestMatch(texts: readonly SearchText[], word: string): { readonly score: number; readonly what: string } {
  return texts
    .map(({ text, weight, what }) => ({ score: weight * matchLevel(text.toLowerCase(), word), what }))
    .reduce((best, one) => (one.score > best.score ? one : best), { score: 0, what: "" });
}

/**
 * How well the text matches: 4 if it is the word, 3 if the word is one of its words, 2 if one of them begins so.
 * 1 if the text contains the word, of four letters or more. Else 0.
 */
function matchLevel(text: string, word: string): number {
  if (text === word) return 4;
  const parts = [...text.split(/[^a-z0-9]+/), ...text.split(/\s+/).map((part) => part.replace(/[.,;:]$/, ""))];
  if (parts.includes(word)) return 3;
  if (parts.some((part) => part.startsWith(word))) return 2;
  return word.length >= 4 && text.includes(word) ? 1 : 0;
}
