import type { Piece } from "./work.ts";
import { html, Html } from "./html.ts";
import { tellStep } from "./words.ts";

/** The time that the page's bars span. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Units of a bar's drawing: fine enough for a hundredfold zoom. */
export const WIDE = 10_000;
const TALL = 20;

/** Height of a bar in its lane: outcomes differ in shape too. */
const heights: Readonly<Record<string, number>> = {
  ok: 8,
  skipped: 4,
  unknown: 12,
  changed: 14,
  would: 14,
  running: 14,
  cut: 16,
  failed: 20,
};

/** Pieces as bars over time, one path an outcome: a thousand rows of them are drawn in no time. */
export function drawBars(pieces: readonly Piece[], span: Span): Html {
  const paths = new Map<string, string>();
  for (const { outcome, from, to } of pieces) {
    const { look } = tellStep(outcome);
    const tall = heights[look] ?? TALL;
    const [start, end] = [placeOf(from, span), placeOf(to, span)];
    // Bars that touch would look like one.
    const gap = end - start > 60 ? Math.round(Math.min(15, (end - start) * 0.06)) : 0;
    const [x, wide] = [start + gap, Math.max(1, end - start - 2 * gap)];
    paths.set(look, `${paths.get(look) ?? ""}M${x} ${(TALL - tall) / 2}h${wide}v${tall}h-${wide}z`);
  }
  const drawn = [...paths].map(([look, path]) => `<path class="${look}" d="${path}"/>`).join("");
  return html`<svg class="bars" viewBox="0 0 ${WIDE} ${TALL}" preserveAspectRatio="none" aria-hidden="true">
    ${new Html(drawn)}
  </svg>`;
}

export function placeOf(at: number, { from, to }: Span): number {
  return Math.round((Math.min(Math.max(at, from), to) - from) * (WIDE / Math.max(1, to - from)));
}
