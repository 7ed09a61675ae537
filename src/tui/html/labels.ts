import { formatDuration } from "#base/units.ts";
import type { Outcome } from "#engine/events/event.ts";
import type { NodeModel } from "#engine/events/run-model.ts";
import { outcomeLabel } from "../work-item.ts";
import { html, type Html } from "./html.ts";

/** A mark, a word and the CSS class of their colour: colour alone shows no outcome. */
export interface Label {
  readonly mark: string;
  readonly word: string;
  readonly className: string;
}

const marks = {
  ok: ["✔", "ok"],
  changed: ["●", "changed"],
  "would-change": ["◇", "would"],
  failed: ["✖", "failed"],
  skipped: ["↓", "skipped"],
  unknown: ["?", "unknown"],
  interrupted: ["⚠", "cut"],
  running: ["▸", "running"],
} as const;

/** A label with the mark and colour of this outcome, and a word of its own. */
export function makeLabel(kind: keyof typeof marks, word: string): Label {
  const [mark, className] = marks[kind];
  return { mark, word, className };
}

export const waitingForYou: Label = makeLabel("unknown", "waiting for you");

/** The label of a step's outcome; undefined: the step runs. */
export function stepLabel(outcome: Outcome | undefined): Label {
  return makeLabel(outcome ?? "running", outcomeLabel(outcome));
}

/** The end of a node. In a living run (`isLive`) a node without an end runs, waits for its turn, or `asks`. */
export function nodeLabel(
  { outcome, startedAt }: Pick<NodeModel, "outcome" | "startedAt">,
  isLive = false,
  asks = false,
): Label {
  if (outcome === undefined) {
    if (!isLive) return makeLabel("running", "not finished");
    if (asks) return waitingForYou;
    return startedAt === undefined ? { ...makeLabel("skipped", "waiting"), mark: "·" } : stepLabel(undefined);
  }
  switch (outcome) {
    case "done":
      return makeLabel("ok", "done");
    case "not-started":
      return makeLabel("skipped", "not started");
    case "unreachable":
      return makeLabel("failed", "unreachable");
    case "failed":
    case "interrupted":
      return stepLabel(outcome);
  }
}

export function badge({ mark, word, className }: Label): Html {
  return html`<span class="badge ${className}"><span aria-hidden="true">${mark}</span> ${word}</span>`;
}

// A formatter is slow to make, and a thousand rows have numbers each.
const inEnglish = new Intl.NumberFormat("en");

/** `1,234 nodes`, `1 node`: the number, and the noun in the plural unless the number is 1. */
export function countNoun(number: number, noun: string): string {
  return `${number < 1000 ? number : inEnglish.format(number)} ${number === 1 ? noun : `${noun}s`}`;
}

/** Milliseconds since the epoch as `2026-11-21 06:15:00 UTC`. */
export function timestamp(at: number): Html {
  const iso = new Date(at).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace("T", " ")} UTC</time>`;
}

/**
 * A duration that the page's script keeps counting from `since`, in milliseconds since the epoch. `elapsed`: its present
 * milliseconds.
 */
export function runningTime(since: number, elapsed: number): Html {
  return html`<span data-since="${since}">${formatDuration(elapsed)}</span>`;
}
