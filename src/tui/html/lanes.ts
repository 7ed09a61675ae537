import { gzipSync } from "node:zlib";
import { formatDuration } from "#base/units.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { drawBars, positionOn, type TimeSpan } from "./bars.ts";
import { Budget } from "./details.ts";
import { html, type Html } from "./html.ts";
import { drawLane, drawLaneBody } from "./lane.ts";
import { drawTimeline, fewRows } from "./timeline.ts";
import type { Lane } from "./work.ts";
import { stepLabel } from "./labels.ts";

/** Most steps that are drawn into the page itself; the steps of further nodes are packed until a reader opens their row. */
const mostPlainSteps = 500;
/** Most characters of texts from nodes, in all rows together. */
const mostTextCharacters = 3_500_000;

export interface LanesOptions {
  readonly model: RunModel;
  readonly lanes: readonly Lane[];
  readonly logOf?: (node?: string) => string;
}

/** The timeline of a page that is complete in itself: stages, then a row for each node with its bars, which opens to its steps. */
export function drawLanes({ model, lanes, logOf }: LanesOptions): Html {
  const span = { from: model.startedAt, to: Math.max(model.lastAt, model.startedAt + 1) };
  const budget = new Budget(mostTextCharacters);
  const packed: string[] = [];
  let plain = mostPlainSteps;
  const rows = lanes.map((lane, index) => {
    const { node, pieces, tally } = lane;
    const log = logOf?.(node?.name);
    const body = drawLaneBody(lane, { model, span, budget, ...(log !== undefined && { log }) });
    plain -= pieces.length;
    const isPlain = plain >= 0 || index === 0;
    const open = isPlain && lanes.length <= fewRows && tally.failed > 0;
    const drawing = { bars: drawBars(pieces, span), dryRun: model.dryRun, open };
    if (isPlain) return drawLane(lane, { ...drawing, body });
    packed.push(body.source);
    return drawLane(lane, { ...drawing, packed: packed.length - 1 });
  });
  const gone = packed.length > 0 ? ", and the steps of some nodes cannot be opened" : "";
  const scriptless = `Without scripts the rows cannot be filtered${gone}.`;
  return html`${drawTimeline({ model, lanes, span, rows, scriptless })}
    <script type="text/plain" id="bars">
      ${pack(lanes.map((lane) => barTexts(lane, span)))}
    </script>
    <script type="text/plain" id="packed">
      ${pack(packed)}
    </script>`;
}

/** A value for the page's script: gzip in base64, which holds no HTML. */
function pack(value: unknown): string {
  return gzipSync(JSON.stringify(value)).toString("base64");
}

/** The bars of a row for the page's script: first unit, last unit, and the words. */
export function barTexts({ pieces }: Lane, span: TimeSpan): readonly (readonly [number, number, string])[] {
  return pieces.map(({ item: { outcome }, title, from, to }) => {
    const time = to > from ? `, ${formatDuration(to - from)}` : "";
    return [positionOn(from, span), positionOn(to, span), `${title}: ${stepLabel(outcome).word}${time}`];
  });
}
