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

/** A sentence of a comment has at most so many words. */
const mostWords = 25;

/** Words of a comment or a paragraph that hide its subject, and sentences of a comment that are too long. */
export function faultsOf({ text, isComment }: Prose): readonly WordFault[] {
  const faults = new Map<number, WordFault>();
  if (isComment)
    for (const { 0: sentence, index } of text.matchAll(/[^\s.!?:;].*?(?=[.!?:;](?:\s|$)|$)/g)) {
      const { length } = sentence.trim().split(/\s+/);
      if (length > mostWords) faults.set(index, { at: index, message: `a sentence of ${length} words` });
    }
  for (const { pattern, isOfComments, message } of rules) {
    if (isOfComments && !isComment) continue;
    for (const { 0: word, index } of text.matchAll(pattern))
      if (!faults.has(index)) faults.set(index, { at: index, message: message(word) });
  }
  return [...faults.values()].toSorted((a, b) => a.at - b.at);
}
