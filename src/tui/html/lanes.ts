import type { RunModel } from "#engine/events/run-model.ts";
import { formatDuration } from "../line.ts";
import { drawBars, placeOf, WIDE, type Span } from "./bars.ts";
import { Budget } from "./budget.ts";
import { html, type Html, type Part } from "./html.ts";
import { drawLaneBody } from "./lane-body.ts";
import { pack } from "./pack.ts";
import type { Lane } from "./work.ts";
import { badge, count, tellEnd, tellStep } from "./words.ts";

/** Steps that are drawn into the page itself; those of further nodes are packed, and unpacked when they are opened. */
const PLAIN_STEPS = 500;
/** Characters that nodes decide the length of, in all rows together. */
const TEXTS = 3_500_000;
/** So many rows can be taken in at a glance: failed nodes are open then from the start, and stages are listed. */
const FEW = 12;

/** From here on the browser lays out only the rows in sight. */
const MANY = 100;

export interface LanesOptions {
  readonly model: RunModel;
  readonly lanes: readonly Lane[];
  readonly logOf?: (node?: string) => string;
}

/** The timeline: stages, then a row for each node with its bars, which opens to its steps. */
export function drawLanes({ model, lanes, logOf }: LanesOptions): Html {
  const span = { from: model.startedAt, to: Math.max(model.lastAt, model.startedAt + 1) };
  const budget = new Budget(TEXTS);
  const packed: string[] = [];
  let plain = PLAIN_STEPS;
  const rows = lanes.map((lane, index) => {
    const { node, pieces, tally } = lane;
    const log = logOf?.(node?.name);
    const body = drawLaneBody(lane, { model, span, budget, ...(log !== undefined && { log }) });
    plain -= pieces.length;
    const isPlain = plain >= 0 || index === 0;
    if (!isPlain) packed.push(body.source);
    const open = isPlain && lanes.length <= FEW && tally.failed > 0;
    return drawLane(lane, {
      span,
      dryRun: model.dryRun,
      open,
      body: isPlain ? body : undefined,
      packed: packed.length - 1,
    });
  });
  return html`<section class="timeline" aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      ${drawControls(model, lanes)}
      <div class="lanes${lanes.length > MANY && " many"}" id="lanes">
        <div class="axis" aria-hidden="true">
          <span></span>
          <div class="track" id="axis" data-from="${span.from}" data-long="${span.to - span.from}">${ticks(span)}</div>
          <span></span>
        </div>
        ${drawStages(model, span)}
        <div class="rows">${rows}</div>
      </div>
      <p id="none" hidden>Nothing matches. <button type="button" id="clear">Show all nodes</button></p>
      <noscript
        ><p class="gone">
          Without scripts the rows cannot be
          filtered${packed.length > 0 && ", and the steps of some nodes cannot be opened"}.
        </p></noscript
      >
    </section>
    <script type="text/plain" id="bars">
      ${pack(lanes.map(({ pieces }) => pieces.map((piece) => barOf(piece, span))))}
    </script>
    <script type="text/plain" id="packed">
      ${pack(packed)}
    </script>`;
}

function barOf({ title, outcome, from, to }: Lane["pieces"][number], span: Span): readonly (string | number)[] {
  const time = to > from ? `, ${formatDuration(to - from)}` : "";
  return [placeOf(from, span), placeOf(to, span), `${title}: ${tellStep(outcome).word}${time}`];
}

function drawControls(model: RunModel, lanes: readonly Lane[]): Html {
  const all = lanes.length;
  const kinds: readonly (readonly [string, string, number])[] = [
    ["all", "All", all],
    ["failed", "Failed", lanes.filter((lane) => kindsOf(lane).includes("failed")).length],
    [
      "changed",
      model.dryRun ? "Would change" : "Changed",
      lanes.filter((lane) => kindsOf(lane).includes("changed")).length,
    ],
    ["ok", "In order", lanes.filter((lane) => kindsOf(lane).includes("ok")).length],
    ["open", "Not finished", lanes.filter((lane) => kindsOf(lane).includes("open")).length],
  ];
  return html`<form class="controls" id="controls" role="search" aria-label="Nodes and steps">
    <label class="find"
      >Find a node or a step
      <input type="search" id="find" autocomplete="off" spellcheck="false" placeholder="n12, partition, ${"…"}"
    /></label>
    <fieldset>
      <legend>Show</legend>
      ${kinds.flatMap(([value, name, number]) =>
        number > 0 || value === "all"
          ? [
              html`<label
                ><input type="radio" name="show" value="${value}" ${value === "all" && html` checked`} /><span
                  >${name} <b>${number.toLocaleString("en")}</b></span
                ></label
              >`,
            ]
          : [],
      )}
    </fieldset>
    <div class="zoom" role="group" aria-label="Zoom of the timeline">
      <button type="button" id="out" aria-label="Zoom out" disabled>${"−"}</button
      ><button type="button" id="whole" disabled>Whole run</button
      ><button type="button" id="in" aria-label="Zoom in">+</button
      ><label class="pan" hidden
        >Move <input type="range" id="pan" min="0" max="1000" value="0" aria-label="Move along the time"
      /></label>
    </div>
    <p id="shown" role="status">${all.toLocaleString("en")} shown</p>
  </form>`;
}

/** Filters that a row answers to. */
function kindsOf({ node, tally }: Lane): readonly string[] {
  const failed = tally.failed > 0 || node?.outcome === "failed" || node?.outcome === "unreachable";
  const changed = tally.changed + tally.wouldChange > 0;
  const open = node !== undefined && node.outcome !== "done" && !failed;
  return [failed && "failed", changed && "changed", open && "open", !failed && !changed && !open && "ok"].filter(
    (kind) => kind !== false,
  );
}

/** The times at the quarters of the span. */
function ticks({ from, to }: Span): readonly Html[] {
  return [0, 1, 2, 3].map(
    (index) => html`<span>${index === 0 ? "0" : formatDuration(((to - from) * index) / 4)}</span>`,
  );
}

function drawStages(model: RunModel, span: Span): Part {
  const known = model.stages.filter(({ startedAt }) => startedAt !== undefined);
  if (model.stages.length < 2 || known.length === 0) return undefined;
  const rows = known.map(({ title, state, startedAt = span.from, endedAt = model.lastAt }) => {
    const outcome =
      state === "ok" || state === "failed" || state === "skipped" || state === "interrupted" ? state : undefined;
    const told = tellStep(outcome);
    const word = outcome === "ok" ? "done" : told.word;
    const [x, end] = [placeOf(startedAt, span), placeOf(endedAt, span)];
    return html`<li class="stage ${told.look}">
      <span class="name"
        ><span aria-hidden="true" class="mark">${outcome === "ok" ? "✔" : told.mark}</span> ${title}<span class="hidden"
          >: ${word},</span
        ></span
      ><span class="track"
        ><svg class="bars" viewBox="0 0 ${WIDE} 20" preserveAspectRatio="none" aria-hidden="true">
          <path class="span ${told.look}" d="M${x} 7h${Math.max(1, end - x)}v6h-${Math.max(1, end - x)}z" /></svg></span
      ><span class="time">${formatDuration(Math.max(0, endedAt - startedAt))}</span>
    </li>`;
  });
  const list = html`<ol class="stages" aria-label="Stages">
    ${rows}
  </ol>`;
  if (rows.length <= FEW) return list;
  const failed = known.filter(({ state }) => state === "failed").length;
  return html`<details class="all-stages">
    <summary>${count(rows.length, "stage")}${failed > 0 && `, ${failed} failed`}</summary>
    ${list}
  </details>`;
}

interface Drawn {
  readonly span: Span;
  readonly dryRun: boolean;
  readonly open: boolean;
  readonly body: Html | undefined;
  readonly packed: number;
}

function drawLane(lane: Lane, { span, dryRun, open, body, packed }: Drawn): Html {
  const { id, name, node, pieces, tally, from, to } = lane;
  const told = node
    ? tellEnd(node.outcome)
    : tellStep(tally.failed > 0 ? "failed" : tally.changed > 0 ? "changed" : "ok");
  const differs = dryRun ? tally.wouldChange : tally.changed;
  const counts = [
    count(tally.run, "step"),
    differs > 0 && `${differs} ${dryRun ? "would change" : "changed"}`,
    tally.failed > 0 && `${tally.failed} failed`,
    tally.unknown > 0 && `${tally.unknown} unknown`,
    tally.skipped > 0 && `${tally.skipped} skipped`,
  ].filter((part) => part !== false);
  return html`<details
    class="lane ${told.look}"
    id="${id}"
    data-name="${name}"
    data-kinds="${kindsOf(lane).join(" ")}"
    ${open && html` open`}${body === undefined && html` data-packed="${packed}"`}
  >
    <summary>
      <span class="name">${name}</span>${badge(told)}<span class="counts">${counts.join(" · ")}</span
      ><span class="track">${drawBars(pieces, span)}</span
      ><span class="time">${formatDuration(Math.max(0, to - from))}</span>
    </summary>
    <div class="body">${body}</div>
  </details> `;
}
