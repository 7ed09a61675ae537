import { formatDuration } from "#base/units.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { positionOn, drawingWidth, type TimeSpan } from "./bars.ts";
import { html, type Html, type HtmlValue } from "./html.ts";
import { kindsOfLane, laneKinds } from "./lane.ts";
import type { Lane } from "./work.ts";
import { countNoun, runningTime, stepLabel } from "./labels.ts";

/** Up to this many rows, failed nodes are open from the start; up to this many stages, their list is open. */
export const fewRows = 12;

/** With more rows, the browser lays out only the rows in sight. */
const manyRows = 100;

export interface Timeline {
  readonly model: RunModel;
  readonly lanes: readonly Lane[];
  readonly span: TimeSpan;
  readonly rows: readonly Html[];
  /** The address of the rows' bodies for the page's script; absent: the page is complete in itself. */
  readonly live?: string;
  /** Whether a process works on the run, so that its page changes. */
  readonly isLive?: boolean;
  /** The note for a browser without scripts. */
  readonly scriptless: string;
}

/** Controls, axis, stages, and the rows under them. */
export function drawTimeline({ model, lanes, span, rows, live, isLive = false, scriptless }: Timeline): Html {
  return html`<section class="timeline" aria-labelledby="timeline">
    <h2 id="timeline">Timeline</h2>
    ${drawControls(model, lanes, live !== undefined)}
    <div
      class="lanes${lanes.length > manyRows && " many"}"
      id="lanes"
      ${live !== undefined && html` data-live="${live}"`}${live !== undefined && model.state === "finished" && html` data-over="yes"`}
    >
      <div class="axis" aria-hidden="true">
        <span></span>
        <div class="track" id="axis" data-from="${span.from}" data-long="${span.to - span.from}">${ticks(span)}</div>
        <span></span>
      </div>
      <div id="stages">${drawStages(model, span, isLive)}</div>
      <div class="rows" id="rows">${rows}</div>
    </div>
    <p id="none" hidden>Nothing matches. <button type="button" id="clear">Show all nodes</button></p>
    <noscript><p class="gone">${scriptless}</p></noscript>
  </section>`;
}

/** The number of rows by the name of their kind; `all`: of every kind. */
export function kindCounts(lanes: readonly Lane[]): ReadonlyMap<string, number> {
  const all = lanes.map(kindsOfLane);
  return new Map([
    ["all", all.length],
    ...laneKinds.map((kind) => [kind, all.filter((has) => has[kind]).length] as const),
  ]);
}

function drawControls(model: RunModel, lanes: readonly Lane[], isLive: boolean): Html {
  const counts = kindCounts(lanes);
  const names: readonly (readonly [string, string])[] = [
    ["all", "All"],
    ["failed", lanes.some(({ tally }) => tally.unreachable > 0) ? "Failed or unreachable" : "Failed"],
    ["changed", model.dryRun ? "Would change" : "Changed"],
    ["ok", "In order"],
    ["open", "Not finished"],
  ];
  return html`<form class="controls" id="controls" role="search" aria-label="Nodes and steps">
    <label class="find"
      >Find a node or a step
      <input type="search" id="find" autocomplete="off" spellcheck="false" placeholder="n12, partition, ${"…"}"
    /></label>
    <fieldset>
      <legend>Show</legend>
      ${names.flatMap(([value, name]) => {
        const number = counts.get(value) ?? 0;
        // A filter without rows may get some while the run goes on.
        return number > 0 || value === "all" || isLive
          ? [
              html`<label
                ><input type="radio" name="show" value="${value}" ${value === "all" && html` checked`} /><span
                  >${name} <b id="count-${value}">${number.toLocaleString("en")}</b></span
                ></label
              >`,
            ]
          : [];
      })}
    </fieldset>
    <div class="zoom" role="group" aria-label="Zoom of the timeline">
      <button type="button" id="out" aria-label="Zoom out" disabled>${"−"}</button
      ><button type="button" id="whole" disabled>Whole run</button
      ><button type="button" id="in" aria-label="Zoom in">+</button
      ><label class="pan" hidden
        >Move <input type="range" id="pan" min="0" max="1000" value="0" aria-label="Move along the time"
      /></label>
    </div>
    <p id="shown" role="status">${lanes.length.toLocaleString("en")} shown</p>
  </form>`;
}

/** The times at the start of each quarter of the span. */
function ticks({ from, to }: TimeSpan): readonly Html[] {
  return [0, 1, 2, 3].map((index) => html`<span>${index === 0 ? "0" : tickText(((to - from) * index) / 4)}</span>`);
}

/** The time of a tick, below a minute in tenths of a second: ticks 1.5 s apart must not read as 2 s apart. */
export function tickText(milliseconds: number): string {
  return milliseconds < 60_000 && milliseconds >= 10_000
    ? `${Number((milliseconds / 1000).toFixed(1))} s`
    : formatDuration(milliseconds);
}

/** The begun stages as bars over time; undefined without one, and for a run of one stage. `isLive`: the page's script lets running bars grow. */
export function drawStages(model: RunModel, span: TimeSpan, isLive = false): HtmlValue {
  const known = model.stages.filter(({ startedAt }) => startedAt !== undefined);
  if (model.stages.length < 2 || known.length === 0) return undefined;
  const rows = known.map(({ title, state, startedAt = span.from, endedAt = model.lastAt }) => {
    const outcome =
      state === "ok" || state === "failed" || state === "skipped" || state === "interrupted" ? state : undefined;
    const label = stepLabel(outcome);
    const word = outcome === "ok" ? "done" : label.word;
    const [x, end] = [positionOn(startedAt, span), positionOn(endedAt, span)];
    const isGoing = isLive && outcome === undefined;
    const took = Math.max(0, endedAt - startedAt);
    return html`<li class="stage ${label.className}">
      <span class="name"
        ><span aria-hidden="true" class="mark">${outcome === "ok" ? "✔" : label.mark}</span> ${title}<span
          class="hidden"
          >: ${word},</span
        ></span
      ><span class="track"
        ><svg class="bars" viewBox="0 0 ${drawingWidth} 20" preserveAspectRatio="none" aria-hidden="true">
          <path
            class="span ${label.className}"
            ${isGoing && html`data-from="${x}" `}d="M${x} 7h${Math.max(1, end - x)}v6h-${Math.max(1, end - x)}z"
          /></svg></span
      ><span class="time">${isGoing ? runningTime(startedAt, took) : formatDuration(took)}</span>
    </li>`;
  });
  const list = html`<ol class="stages" aria-label="Stages">
    ${rows}
  </ol>`;
  if (rows.length <= fewRows) return list;
  const failed = known.filter(({ state }) => state === "failed").length;
  return html`<details class="all-stages">
    <summary>
      ${countNoun(model.stages.length, "stage")}${rows.length < model.stages.length && `, ${rows.length} begun`}${failed > 0 && `, ${failed} failed`}
    </summary>
    ${list}
  </details>`;
}
