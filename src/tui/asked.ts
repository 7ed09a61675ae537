import type { Question } from "#engine/events/event.ts";

/** A question that a run waits for, as data: the asking node, the text, and the command that answers. */
export interface Asked {
  readonly node?: string;
  readonly kind: Question["kind"];
  readonly text: string;
  readonly command: string;
}

export function askedOf({ node, kind, text }: Question, run: string): Asked {
  return { ...(node !== undefined && { node }), kind, text, command: `kcore runs attach ${run}` };
}

/** “waits for you: n1: Passphrase?  Answer with kcore runs attach ID”. */
export function tellAsked({ node, text, command }: Asked): string {
  return `waits for you: ${node === undefined ? "" : `${node}: `}${text}  Answer with ${command}`;
}
