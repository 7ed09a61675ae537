import type { Piece } from "./work.ts";
import { html, Html } from "./html.ts";
import { stepLabel } from "./labels.ts";

/** The time that the page's bars span, in milliseconds since the epoch. A span that may grow ends at `Infinity`. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

/** Units in the width of a drawing of bars: fine enough for a hundredfold zoom. */
export const drawingWidth = 10_000;
const drawingHeight = 20;
/** The end of a running bar on an axis that may grow: eleven days. */
const farthestEnd = 1e9;

/** The height of a bar by its outcome: outcomes differ in shape, too. */
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

/** Pieces as bars over time, one path for each outcome, so that a browser draws a thousand rows quickly. */
export function drawBars(pieces: readonly Piece[], span: TimeSpan): Html {
  const paths: Paths = new Map();
  for (const piece of pieces) addBar(paths, piece, span);
  return drawBarPaths(paths);
}

/** Bars on an axis that may grow: each ended piece is drawn once, and its drawing kept. */
export class GrowingBars {
  readonly #over: Piece[] = [];
  readonly #paths: Paths = new Map();

  /** The bars of all these pieces. `from`: the start of the axis, in milliseconds since the epoch. */
  draw(pieces: readonly Piece[], from: number): Html {
    const span = { from, to: Infinity };
    if (this.#over.some((piece, at) => piece !== pieces[at])) {
      this.#over.length = 0;
      this.#paths.clear();
    }
    for (let next = pieces[this.#over.length]; next?.item.outcome !== undefined; next = pieces[this.#over.length]) {
      addBar(this.#paths, next, span);
      this.#over.push(next);
    }
    if (this.#over.length === pieces.length) return drawBarPaths(this.#paths);
    const paths = new Map(this.#paths);
    for (const piece of pieces.slice(this.#over.length)) addBar(paths, piece, span);
    return drawBarPaths(paths);
  }
}

type Paths = Map<string, string>;

function addBar(paths: Paths, { item: { outcome }, from, to }: Piece, span: TimeSpan): void {
  const { className } = stepLabel(outcome);
  const tall = heights[className] ?? drawingHeight;
  const [start, end] = [positionOn(from, span), positionOn(to, span)];
  // On a growing axis, the unit is chosen for an axis that ends where the bar begins.
  const unit = span.to === Infinity ? Math.max(1, start / drawingWidth) : 1;
  // Without a gap, adjacent bars would look like one.
  const gap = end - start > 60 * unit ? Math.round(Math.min(15 * unit, (end - start) * 0.06)) : 0;
  const [x, wide] = [start + gap, Math.max(Math.round(unit), end - start - 2 * gap)];
  // V8 links added strings and flattens them again for each picture; joined strings are flat.
  paths.set(
    className,
    [paths.get(className), "M", x, " ", (drawingHeight - tall) / 2, "h", wide, "v", tall, "h-", wide, "z"].join(""),
  );
}

function drawBarPaths(paths: Paths): Html {
  const drawn = [...paths].map(([className, path]) => `<path class="${className}" d="${path}"/>`).join("");
  return html`<svg class="bars" ${viewBox(drawingWidth)} preserveAspectRatio="none" aria-hidden="true">
    ${new Html(drawn)}
  </svg>`;
}

/** The position of a time on the axis, in units of the drawing. */
export function positionOn(at: number, { from, to }: TimeSpan): number {
  if (to === Infinity) return Math.min(farthestEnd, Math.max(0, Math.round(at - from)));
  return Math.round((Math.min(Math.max(at, from), to) - from) * (drawingWidth / Math.max(1, to - from)));
}

/** The source of growing bars, fitted to the present length of the axis in milliseconds; web-page.js does the same. */
export function fitBars(source: string, long: number): string {
  return source.replace(viewBox(drawingWidth).source, viewBox(long).source);
}

function viewBox(wide: number): Html {
  return html`viewBox="0 0 ${wide} ${drawingHeight}"`;
}
