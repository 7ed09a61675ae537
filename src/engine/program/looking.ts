import { quote } from "#base/quote.ts";
import { wholeText } from "./bootstrap.ts";
import { shippedText } from "./texts.ts";

/** What a shell is asked for without a runner: a word, the node's facts, a command, the end of one, who holds it. */
export type Looking =
  | { readonly kind: "ping" }
  | { readonly kind: "facts" }
  | { readonly kind: "exec"; readonly text: string }
  | { readonly kind: "end"; readonly pid: string }
  /** Who holds the node; unless `isLook`, that run, or only this one, is ended. */
  | { readonly kind: "unlock"; readonly stateDir: string; readonly run: string; readonly isLook: boolean };

/** look.sh, and what it is to do. */
export function lookingText(run: { readonly nonce: string }, what: Looking): string {
  return wholeText(run, [`k_nonce=${run.nonce}`, shippedText("look"), ...wordsOf(what), ""].join("\n"));
}

function wordsOf(what: Looking): readonly string[] {
  switch (what.kind) {
    case "ping":
      return [];
    case "facts":
      return [shippedText("step"), `k_facts ${quote(shippedText("facts"))}`];
    case "exec":
      return [`k_exec ${quote(what.text)}`];
    case "unlock":
      return [
        shippedText("lock"),
        shippedText("unlock"),
        `k_unlock ${quote(what.stateDir)} ${quote(what.run)} ${quote(what.isLook ? "look" : "")}`,
      ];
    case "end":
      return [`k_end ${quote(what.pid)}`];
  }
}
