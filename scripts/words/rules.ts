import type { Prose } from "./prose.ts";

export interface WordFault {
  /** Where in the prose. */
  readonly at: number;
  readonly message: string;
}

interface Rule {
  readonly pattern: RegExp;
  readonly message: (word: string) => string;
  /** In comments alone. */
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

/** A sentence has at most so many words; code spans with commas between them are one. */
const mostWords = 25;

/** Each ends at a mark or at an edge: of a cell, of a column, of a tag of HTML. */
const sentences = /[^\s.!?:;|·"”)\]*_].*?(?=[.!?:;]["”)\]*_]*(?:\s|$)|\s[|·]|$)/g;

/** Words that hide the subject of a comment or a paragraph, and sentences that are too long. */
export function faultsOf({ text, isComment }: Prose): readonly WordFault[] {
  const faults = new Map<number, WordFault>();
  for (const { 0: sentence, index } of text.matchAll(sentences)) {
    const words = sentence.replaceAll(/xx+(?:, xx+)+/g, "x").match(/\S*[\p{L}\p{N}]\S*/gu) ?? [];
    if (words.length > mostWords) faults.set(index, { at: index, message: `a sentence of ${words.length} words` });
  }
  for (const { pattern, isOfComments, message } of rules) {
    if (isOfComments && !isComment) continue;
    for (const { 0: word, index } of text.matchAll(pattern))
      if (!faults.has(index)) faults.set(index, { at: index, message: message(word) });
  }
  return [...faults.values()].toSorted((a, b) => a.at - b.at);
}
