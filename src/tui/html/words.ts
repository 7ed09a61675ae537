import { formatDuration } from "#base/units.ts";
import type { NodeOutcome, Outcome } from "#engine/events/event.ts";
import type { NodeModel } from "#engine/events/run-model.ts";
import { html, type Html } from "./html.ts";

/** How an outcome is told: never by colour alone, always by a mark and a word too. */
interface Telling {
  readonly mark: string;
  readonly word: string;
  /** The class that colours it. */
  readonly look: string;
}

const steps: Readonly<Record<Outcome | "running", Telling>> = {
  ok: { mark: "✔", word: "in order", look: "ok" },
  changed: { mark: "●", word: "changed", look: "changed" },
  "would-change": { mark: "◇", word: "would change", look: "would" },
  failed: { mark: "✖", word: "failed", look: "failed" },
  skipped: { mark: "↓", word: "skipped", look: "skipped" },
  unknown: { mark: "?", word: "unknown", look: "unknown" },
  interrupted: { mark: "⚠", word: "interrupted", look: "cut" },
  running: { mark: "▸", word: "running", look: "running" },
};

const ends: Readonly<Record<NodeOutcome | "running", Telling>> = {
  done: { mark: "✔", word: "done", look: "ok" },
  failed: { mark: "✖", word: "failed", look: "failed" },
  unreachable: { mark: "✖", word: "unreachable", look: "failed" },
  interrupted: { mark: "⚠", word: "interrupted", look: "cut" },
  "not-started": { mark: "↓", word: "not started", look: "skipped" },
  running: { mark: "▸", word: "not finished", look: "running" },
};

export function tellStep(outcome: Outcome | undefined): Telling {
  return steps[outcome ?? "running"];
}

/** The end of a node. In a living run (`isLive`) a node without an end runs, waits for its turn, or `asks` and waits for an answer. */
export function tellEnd(node: Pick<NodeModel, "outcome" | "startedAt">, isLive = false, asks = false): Telling {
  if (node.outcome !== undefined || !isLive) return ends[node.outcome ?? "running"];
  if (asks) return { mark: "?", word: "waiting for you", look: "unknown" };
  return node.startedAt === undefined ? { mark: "·", word: "waiting", look: "skipped" } : steps.running;
}

/** Mark and word, coloured. */
export function badge({ mark, word, look }: Telling): Html {
  return html`<span class="badge ${look}"><span aria-hidden="true">${mark}</span> ${word}</span>`;
}

// Dear to make, and not cheap to use: a thousand rows have numbers each.
const inEnglish = new Intl.NumberFormat("en");

/** `1,234` of something, its name in the plural unless it is one. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number < 1000 ? number : inEnglish.format(number)} ${number === 1 ? one : many}`;
}

/** Milliseconds since the epoch as `2026-11-21 06:15:00 UTC`. */
export function moment(at: number): Html {
  const iso = new Date(at).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace("T", " ")} UTC</time>`;
}

/** A time that the page's script lets go on: milliseconds since the epoch from which it counts, and what it is now. */
export function goingOn(since: number, now: number): Html {
  return html`<span data-since="${since}">${formatDuration(now)}</span>`;
}
