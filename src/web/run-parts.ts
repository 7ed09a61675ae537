import type { ActionModel, NodeModel, RunModel } from "#engine/events/run-model.ts";
import type { SourcePosition } from "#errors/problem.ts";
import { fitBars, GrowingBars, type TimeSpan } from "#tui/html/bars.ts";
import { Budget } from "#tui/html/details.ts";
import { drawFailures, drawWarnings, drawForesight } from "#tui/html/failures.ts";
import { drawFigures, drawSlowest } from "#tui/html/figures.ts";
import { drawHead } from "#tui/html/head.ts";
import { html, Html, type HtmlValue } from "#tui/html/html.ts";
import { drawLane, drawLaneBody } from "#tui/html/lane.ts";
import { barTexts } from "#tui/html/lanes.ts";
import { drawStages, drawTimeline, kindCounts } from "#tui/html/timeline.ts";
import { byUrgency, laneOf, bastionLane, type Lane } from "#tui/html/work.ts";
import { tallyOfRun } from "#tui/tally.ts";
import { actionsByNode } from "#tui/work-item.ts";

/** Most characters of a row's texts; the node's log has the others. */
const mostBodyCharacters = 1_000_000;

export interface RunPartsOptions {
  readonly sourceLine?: (at: SourcePosition) => string | undefined;
  /** The path of a node's log, or without a name of the bastion's. */
  readonly logOf?: (node?: string) => string;
}

interface DrawnLane {
  readonly node: NodeModel;
  readonly actions: readonly ActionModel[];
  readonly lane: Lane;
  /** Grows with each change of the node, because the body may change while the row looks the same. */
  readonly news: number;
  readonly bars: GrowingBars;
  readonly drawn: string;
  /** The row was drawn after the end of the run, or while no process worked on it. */
  readonly isOver: boolean;
  readonly asks: boolean;
}

/** Draws a run's page by its parts. A node's row is drawn anew only after news of the node: its bars do not depend on the axis' length. */
export class RunParts {
  readonly #options: RunPartsOptions;
  readonly #known = new Map<string, DrawnLane>();
  #isLive = false;

  constructor(options: RunPartsOptions = {}) {
    this.#options = options;
  }

  /**
   * Every part that may change, by its element's id; `rows` is JSON with the order of the rows, the time span of the axis, and
   * whether the run is over. `isLive`: a process works on the run.
   */
  draw(model: RunModel, isLive: boolean): readonly (readonly [id: string, html: string])[] {
    this.#isLive = isLive;
    const span = spanOf(model);
    const lanes = this.#lanes(model);
    const rows = byUrgency(lanes.map(({ lane }) => lane));
    const tallies = rows.flatMap(({ node, tally }) => (node ? [tally] : []));
    const part = (id: string, content: HtmlValue) => [id, html`<div id="${id}">${content}</div>`.source] as const;
    return [
      part("head", drawHead(model, isLive)),
      part("figures-part", drawFigures(model, tallyOfRun(model, tallies), isLive)),
      part("failures-part", drawFailures(model, rows, this.#options.sourceLine)),
      part("foresight-part", model.state === "finished" && drawForesight(model)),
      part("warnings-part", drawWarnings(model)),
      part("stages", drawStages(model, span, isLive)),
      ...[...kindCounts(rows)].map(
        ([kind, count]) =>
          [`count-${kind}`, html`<b id="count-${kind}">${count.toLocaleString("en")}</b>`.source] as const,
      ),
      ...lanes.map(({ lane, drawn }) => [lane.id, drawn] as const),
      part("slowest-part", model.state === "finished" && drawSlowest(model, rows)),
      ["rows", JSON.stringify({ order: rows.map(({ id }) => id), ...span, isOver: model.state === "finished" })],
    ];
  }

  /** Draws the page's body. `base`: the address of the run. */
  drawPage(model: RunModel, { base, isLive }: { readonly base: string; readonly isLive: boolean }): Html {
    const parts = new Map(this.draw(model, isLive));
    const whole = (id: string) => new Html(parts.get(id) ?? "");
    const span = spanOf(model);
    const lanes = byUrgency(this.#lanes(model).map(({ lane }) => lane));
    const timeline = drawTimeline({
      model,
      lanes,
      span,
      rows: lanes.map(({ id }) => new Html(fitBars(parts.get(id) ?? "", span.to - span.from))),
      live: base,
      isLive,
      scriptless: "Without scripts the page stands still, and rows do not open.",
    });
    return html`${whole("head")}
      <main>
        ${whole("failures-part")} ${whole("figures-part")} ${whole("foresight-part")} ${whole("warnings-part")}
        ${lanes.length > 0 && timeline} ${whole("slowest-part")}
      </main>`;
  }

  /** The body of a row, with its steps; undefined for an unknown row. */
  drawBody(model: RunModel, id: string): Html | undefined {
    const lane = laneById(model, id);
    if (!lane) return undefined;
    const span = { from: model.startedAt, to: Math.max(model.lastAt, model.startedAt + 1) };
    const log = this.#options.logOf?.(lane.node?.name);
    const budget = new Budget(mostBodyCharacters);
    return drawLaneBody(lane, { model, span, budget, keyed: true, ...(log !== undefined && { log }) });
  }

  /** The bars of a row, for the page's script; undefined for an unknown row. */
  bars(model: RunModel, id: string): ReturnType<typeof barTexts> | undefined {
    const lane = laneById(model, id);
    return lane && barTexts(lane, spanOf(model));
  }

  /** The ids of the rows whose name and titles of steps contain all these words. */
  find(model: RunModel, words: readonly string[]): readonly string[] {
    return this.#lanes(model).flatMap(({ lane: { id, name, pieces } }) => {
      const text = [name, ...pieces.map(({ title }) => title)].join("\n").toLowerCase();
      return words.every((word) => text.includes(word.toLowerCase())) ? [id] : [];
    });
  }

  /** The rows with their HTML, in the order of the run; rows that have not changed are taken from the last drawing. */
  #lanes(model: RunModel): readonly Pick<DrawnLane, "lane" | "drawn">[] {
    const actions = actionsByNode(model);
    const nodes = [...model.nodes.values()].map((node, index) =>
      this.#lane(model, { node, index, actions: actions.get(node.name) ?? noActions }),
    );
    const own = bastionLane(model, workEnd(model)).map((lane) => ({
      lane,
      drawn: drawRow(lane, model, { news: model.lastSeq, isLive: this.#isLive }),
    }));
    return [...own, ...nodes];
  }

  #lane(
    model: RunModel,
    { node, index, actions }: { node: NodeModel; index: number; actions: readonly ActionModel[] },
  ): DrawnLane {
    const known = this.#known.get(node.name);
    const isOver = model.state === "finished" || !this.#isLive;
    const asks = model.questions.some((question) => question.node === node.name);
    const isSame =
      known?.node === node &&
      known.asks === asks &&
      known.actions.length === actions.length &&
      known.actions.every((one, at) => one === actions[at]) &&
      (known.isOver === isOver || isClosed(known));
    if (known && isSame) return known;
    const lane = laneOf(model, { node, index, actions, end: workEnd(model), before: known?.lane });
    const news = (known?.news ?? 0) + 1;
    const bars = known?.bars ?? new GrowingBars();
    const next = {
      node,
      actions,
      lane,
      news,
      isOver,
      asks,
      bars,
      drawn: drawRow(lane, model, { news, bars, asks, isLive: this.#isLive }),
    };
    this.#known.set(node.name, next);
    return next;
  }
}

const noActions: readonly ActionModel[] = [];

/** Whether all work of the row has ended, so that the run's end changes nothing. */
function isClosed({ lane, node }: DrawnLane): boolean {
  const hasEnded = node.outcome !== undefined;
  return hasEnded && lane.pieces.every(({ item }) => item.outcome !== undefined);
}

function drawRow(
  lane: Lane,
  { startedAt, dryRun }: RunModel,
  {
    news,
    bars = new GrowingBars(),
    ...more
  }: { readonly news: number; readonly bars?: GrowingBars; readonly isLive: boolean; readonly asks?: boolean },
): string {
  return drawLane(lane, { bars: bars.draw(lane.pieces, startedAt), dryRun, news, ...more }).source;
}

/** The end to draw for running work: beyond the axis in a living run, whose page hides the part after now. */
function workEnd({ state, lastAt }: RunModel): number {
  return state === "finished" ? lastAt : Infinity;
}

const minute = 60_000;
const axisSteps = [10_000, 20_000, 30_000, minute, 2 * minute, 5 * minute, 10 * minute, 20 * minute, 30 * minute];

/**
 * Milliseconds of the time axis of a living run: a round time beyond the time passed, so that the bars of all rows change
 * seldom, not with each second.
 */
export function axisLength(passed: number): number {
  const step = axisSteps.find((one) => one > passed);
  if (step !== undefined) return step;
  let long = 60 * minute;
  while (long <= passed) long *= 2;
  return long;
}

function spanOf({ startedAt, lastAt, state }: RunModel): TimeSpan {
  const passed = Math.max(1, lastAt - startedAt);
  return { from: startedAt, to: startedAt + (state === "finished" ? passed : axisLength(passed)) };
}

function laneById(model: RunModel, id: string): Lane | undefined {
  const [own] = bastionLane(model);
  if (own?.id === id) return own;
  const index = /^node-(\d+)$/.exec(id)?.[1];
  const node = index === undefined ? undefined : [...model.nodes.values()][Number(index)];
  if (!node) return undefined;
  return laneOf(model, {
    node,
    index: Number(index),
    actions: actionsByNode(model).get(node.name) ?? noActions,
    end: model.lastAt,
  });
}
