import type { Prose } from "./prose.ts";

export interface WordFault {
  /** The offset in the prose's text. */
  readonly at: number;
  readonly message: string;
}

interface Rule {
  readonly pattern: RegExp;
  readonly message: (word: string) => string;
  /** The rule applies only to comments. */
  readonly isOfComments?: true;
}

const rules: readonly Rule[] = [
  {
    pattern: /\b(?:whoever|whomever|whosever|somebody|someone|nobody|anybody|anyone|everybody|no one)\b/gi,
    message: (word) => `“${word}”: name the actor (operator, bastion, controller, agent, peer, step …)`,
  },
  { pattern: /\bthat one\b/gi, message: (word) => `“${word}”: name the thing` },
  {
    pattern: /\bwhat(?:ever)?\b(?![^.!?;]*\?)/gi,
    isOfComments: true,
    message: (word) => `“${word}” hides a subject: name the thing`,
  },
  {
    pattern: /(?<=^\s*|[.!?:;]\s+)(?:what|who|whose|which)\b(?![^.!?;]*\?)/gi,
    message: (word) => `“${word}” hides the subject: name the thing or the actor`,
  },
  {
    pattern: /(?<=^\s*)(?:it|its|they|their|those|these)\b/gi,
    isOfComments: true,
    message: (word) => `“${word}” stands before its noun: name the thing`,
  },
];

/** The maximum number of words in a sentence; a list of code spans, separated by commas, counts as one word. */
const maxWords = 25;

/** A sentence ends at a punctuation mark or at `|`: the border of a table's cell, or an edge (prose.ts). */
const sentences = /[^\s.!?:;|·"”)\]*_].*?(?=[.!?:;]["”)\]*_]*(?:\s|$)|\s[|·]|$)/g;

/** The sentences of the prose that are too long, and its words that stand in place of a named subject; in the text's order. */
export function faultsOf({ text, isComment }: Prose): readonly WordFault[] {
  const faults = new Map<number, WordFault>();
  for (const { 0: sentence, index } of text.matchAll(sentences)) {
    const words = sentence.replaceAll(/xx+(?:, xx+)+/g, "x").match(/\S*[\p{L}\p{N}]\S*/gu) ?? [];
    if (words.length > maxWords) faults.set(index, { at: index, message: `a sentence of ${words.length} words` });
  }
  for (const { pattern, isOfComments, message } of rules) {
    if (isOfComments && !isComment) continue;
    for (const { 0: word, index } of text.matchAll(pattern))
      if (!faults.has(index)) faults.set(index, { at: index, message: message(word) });
  }
  return [...faults.values()].toSorted((a, b) => a.at - b.at);
}
