import type { ActionModel, NodeModel, RunModel } from "#engine/events/run-model.ts";
import type { SourcePosition } from "#errors/problem.ts";
import type { Span } from "#tui/html/bars.ts";
import { Budget } from "#tui/html/budget.ts";
import { drawFailures } from "#tui/html/failures.ts";
import { drawFigures, drawSlowest } from "#tui/html/figures.ts";
import { drawHead } from "#tui/html/head.ts";
import { html, Html, type Part } from "#tui/html/html.ts";
import { drawLane } from "#tui/html/lane.ts";
import { drawLaneBody } from "#tui/html/lane-body.ts";
import { barTexts } from "#tui/html/lanes.ts";
import { drawStages, drawTimeline, kindCounts } from "#tui/html/timeline.ts";
import { drawWarnings } from "#tui/html/warnings.ts";
import { byUrgency, laneOf, ownLane, type Lane } from "#tui/html/work.ts";
import { actionsByNode } from "#tui/work-item.ts";
import { horizonOf } from "./horizon.ts";

/** Characters of a row's texts: more stands in the node's log. */
const BODY_TEXTS = 1_000_000;

export interface RunPartsOptions {
  readonly sourceLine?: (at: SourcePosition) => string | undefined;
  /** Where a node's log lies, to be shown. */
  readonly logOf?: (node?: string) => string;
}

interface KnownLane {
  readonly actions: readonly ActionModel[];
  readonly lane: Lane;
  /** Grows whenever the node has done something: what its row opens to may be new then, though the row looks the same. */
  readonly news: number;
  readonly drawn: { readonly long: number; readonly html: string };
}

/** Draws a run's page by its parts. A row is drawn anew only when its node has done something, or the time axis has grown. */
export class RunParts {
  readonly #options: RunPartsOptions;
  readonly #known = new Map<string, KnownLane & { readonly node: NodeModel }>();

  constructor(options: RunPartsOptions = {}) {
    this.#options = options;
  }

  /** Every part that may change, by its element's id; `rows` is the order of the rows, as JSON. `isLive`: a process goes on with it. */
  draw(model: RunModel, isLive: boolean): readonly (readonly [id: string, html: string])[] {
    const span = spanOf(model);
    const lanes = this.#lanes(model, span);
    const rows = byUrgency(lanes.map(({ lane }) => lane));
    const part = (id: string, content: Part) => [id, html`<div id="${id}">${content}</div>`.source] as const;
    return [
      part("head", drawHead(model, isLive)),
      part("figures-part", drawFigures(model)),
      part("failures-part", drawFailures(model, rows, this.#options.sourceLine)),
      part("warnings-part", drawWarnings(model)),
      part("stages", drawStages(model, span)),
      ...[...kindCounts(rows)].map(
        ([kind, count]) =>
          [`count-${kind}`, html`<b id="count-${kind}">${count.toLocaleString("en")}</b>`.source] as const,
      ),
      ...lanes.map(({ lane, drawn }) => [lane.id, drawn.html] as const),
      part("slowest-part", model.state === "finished" && drawSlowest(model, rows)),
      ["rows", JSON.stringify({ order: rows.map(({ id }) => id), ...span, isOver: model.state === "finished" })],
    ];
  }

  /** The page's body. */
  drawPage(model: RunModel, { base, isLive }: { readonly base: string; readonly isLive: boolean }): Html {
    const parts = new Map(this.draw(model, isLive));
    const whole = (id: string) => new Html(parts.get(id) ?? "");
    const span = spanOf(model);
    const lanes = byUrgency(this.#lanes(model, span).map(({ lane }) => lane));
    const timeline = drawTimeline({
      model,
      lanes,
      span,
      rows: lanes.map(({ id }) => whole(id)),
      live: base,
      scriptless: "Without scripts the page stands still, and rows do not open.",
    });
    return html`${whole("head")}
      <main>
        ${whole("figures-part")} ${whole("failures-part")} ${whole("warnings-part")} ${lanes.length > 0 && timeline}
        ${whole("slowest-part")}
      </main>`;
  }

  /** What a row opens to; undefined where there is no such row. */
  drawBody(model: RunModel, id: string): Html | undefined {
    const lane = laneWith(model, id);
    if (!lane) return undefined;
    const span = { from: model.startedAt, to: Math.max(model.lastAt, model.startedAt + 1) };
    const log = this.#options.logOf?.(lane.node?.name);
    const budget = new Budget(BODY_TEXTS);
    return drawLaneBody(lane, { model, span, budget, keyed: true, ...(log !== undefined && { log }) });
  }

  /** What the bars of a row are; undefined where there is no such row. */
  bars(model: RunModel, id: string): ReturnType<typeof barTexts> | undefined {
    const lane = laneWith(model, id);
    return lane && barTexts(lane, spanOf(model));
  }

  /** The ids of the rows that hold all these words in their name or their steps. */
  find(model: RunModel, words: readonly string[]): readonly string[] {
    return this.#lanes(model, spanOf(model)).flatMap(({ lane: { id, name, pieces } }) => {
      const text = [name, ...pieces.map(({ title }) => title)].join("\n").toLowerCase();
      return words.every((word) => text.includes(word.toLowerCase())) ? [id] : [];
    });
  }

  /** In the order of the run. */
  #lanes(model: RunModel, span: Span): readonly Pick<KnownLane, "lane" | "drawn">[] {
    const actions = actionsByNode(model);
    const nodes = [...model.nodes.values()].map((node, index) =>
      this.#lane(model, { node, index, actions: actions.get(node.name) ?? none, span }),
    );
    const own = ownLane(model, endOf(model)).map((lane) => ({
      lane,
      drawn: drawn(lane, model, { span, news: model.lastSeq }),
    }));
    return [...own, ...nodes];
  }

  #lane(
    model: RunModel,
    { node, index, actions, span }: { node: NodeModel; index: number; actions: readonly ActionModel[]; span: Span },
  ): KnownLane {
    const known = this.#known.get(node.name);
    const isSame =
      known?.node === node &&
      known.actions.length === actions.length &&
      known.actions.every((one, at) => one === actions[at]);
    const isOver = model.state === "finished";
    if (known && isSame && known.drawn.long === span.to - span.from) return known;
    const lane = known && isSame && !isOver ? known.lane : laneOf(model, { node, index, actions, end: endOf(model) });
    const news = (known?.news ?? 0) + 1;
    const next = { node, actions, lane, news, drawn: drawn(lane, model, { span, news }) };
    this.#known.set(node.name, next);
    return next;
  }
}

const none: readonly ActionModel[] = [];

function drawn(
  lane: Lane,
  { dryRun }: RunModel,
  { span, news }: { readonly span: Span; readonly news: number },
): KnownLane["drawn"] {
  return { long: span.to - span.from, html: drawLane(lane, { span, dryRun, news }).source };
}

/** What still runs goes on to the end of the axis; the page hides what lies after now. */
function endOf({ state, lastAt }: RunModel): number {
  return state === "finished" ? lastAt : Infinity;
}

function spanOf({ startedAt, lastAt, state }: RunModel): Span {
  const passed = Math.max(1, lastAt - startedAt);
  return { from: startedAt, to: startedAt + (state === "finished" ? passed : horizonOf(passed)) };
}

function laneWith(model: RunModel, id: string): Lane | undefined {
  const [own] = ownLane(model);
  if (own?.id === id) return own;
  const index = /^node-(\d+)$/.exec(id)?.[1];
  const node = index === undefined ? undefined : [...model.nodes.values()][Number(index)];
  if (!node) return undefined;
  return laneOf(model, {
    node,
    index: Number(index),
    actions: actionsByNode(model).get(node.name) ?? none,
    end: model.lastAt,
  });
}
