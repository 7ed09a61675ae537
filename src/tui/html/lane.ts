import { formatDuration } from "#base/units.ts";
import type { NodeModel, RunModel } from "#engine/events/run-model.ts";
import { causeFirst } from "../cause-line.ts";
import { savedText, sendingText, sentText } from "../describe-event.ts";
import { waitsFor } from "../node-row.ts";
import { drawBars, type TimeSpan } from "./bars.ts";
import {
  drawChanges,
  drawDiff,
  drawFactRows,
  drawOutput,
  drawProblemCard,
  type Budget,
  type FactRow,
} from "./details.ts";
import { html, type Html, type HtmlValue } from "./html.ts";
import type { Lane, Piece } from "./work.ts";
import { badge, stepLabel, countNoun, nodeLabel } from "./labels.ts";

export interface BodyOptions {
  readonly model: RunModel;
  readonly span: TimeSpan;
  readonly budget: Budget;
  /** The path of the node's log, or of the bastion's. */
  readonly log?: string;
  /** Whether the steps' rows have keys, so that outputs that a reader opened stay open when the page draws the body again. */
  readonly keyed?: boolean;
}

/** The body of a node's row: a table of its steps with their changes, output and causes. */
export function drawLaneBody(
  { name, node, pieces }: Lane,
  { model, span, budget, log, keyed = false }: BodyOptions,
): Html {
  const titles = new Map(model.stages.map(({ id, title }) => [id, title]));
  // By stage, then by time: steps that are skipped from the start are reported amid other stages.
  const order = new Map(model.stages.map(({ id }, index) => [id, index]));
  const stageIndex = ({ item: { stage } }: Piece) => order.get(stage) ?? 0;
  const sorted = pieces.toSorted((a, b) => stageIndex(a) - stageIndex(b) || a.from - b.from);
  const groups = [...Map.groupBy(sorted, ({ item: { stage } }) => stage)];
  const several = groups.length > 1 || groups.some(([stage, [first]]) => first?.title !== titles.get(stage));
  return html`${drawNodeFacts(node, log, node && waitsFor(model, node.name))}${
    pieces.length === 0
      ? html`<p class="gone">No step was begun here.</p>`
      : html`<table class="steps">
          <caption>
            Steps of ${name}
          </caption>
          <thead>
            <tr>
              <th scope="col">Outcome</th>
              <th scope="col">Step</th>
              <th scope="col" class="time">Began</th>
              <th scope="col" class="time">Took</th>
            </tr>
          </thead>
          ${groups.map(
            ([stage, own]) =>
              html`<tbody>
                ${
                  several &&
                  html`<tr class="group">
                    <th colspan="4" scope="rowgroup">${titles.get(stage) ?? stage}</th>
                  </tr>`
                }${own.map((piece) => drawPiece(piece, { span, budget, keyed, startedAt: model.startedAt }))}
              </tbody>`,
          )}
        </table>`
  }`;
}

function drawNodeFacts(node: Lane["node"], log: string | undefined, waits: string | undefined): HtmlValue {
  const {
    milestone,
    fingerprint,
    saved = [],
    exchanges = 0,
    reason,
    problem,
    sending,
    sent = [],
    steps = [],
  }: Partial<NodeModel> = node ?? {};
  const hasFailed = steps.some(({ outcome }) => outcome === "failed");
  const isAtWork = steps.some(({ outcome }) => outcome === undefined);
  const rows: readonly FactRow[] = [
    ["Milestone", milestone],
    ["Host key", fingerprint && html`<code>${fingerprint}</code>`],
    ["Round trips", exchanges > 0 && String(exchanges)],
    ["Saved", saved.map(savedText).join("; ")],
    ["Sent", sent.map(sentText).join("; ")],
    ["State", reason ?? (sending ? sendingText(sending) : isAtWork ? undefined : waits)],
    ["Log", log !== undefined && html`<code>${log}</code>`],
  ];
  if (rows.every(([, value]) => !value)) return undefined;
  return html`${problem && !hasFailed && drawProblemCard(problem)}
    <dl class="about">${drawFactRows(rows)}</dl>`;
}

interface PieceOptions extends Pick<BodyOptions, "span" | "budget" | "keyed"> {
  readonly startedAt: number;
}

function drawPiece(piece: Piece, { span, budget, startedAt, keyed = false }: PieceOptions): Html {
  const { item, title, from, to } = piece;
  const { outcome, module, reason, note, changes, diff, position: at, key } = item;
  const problem = causeFirst(item.problem, item.exitStatus);
  const always = item.always && (outcome === "changed" || outcome === "would-change");
  const more = [
    reason && html`<p class="reason">${reason}</p>`,
    outcome === undefined && note && html`<p class="reason">${note}</p>`,
    problem && drawProblemCard(problem.at === undefined && at ? { ...problem, at } : problem),
    drawChanges(changes, budget),
    drawDiff(diff, budget),
    drawOutput({ ...item, title }, budget, outcome === "failed" && !problem?.detail),
  ].filter((part) => part !== undefined && part !== false && part !== "");
  const took = item.duration === undefined && outcome !== undefined ? "–" : formatDuration(to - from);
  return html`<tr class="${stepLabel(outcome).className}" ${keyed && html` data-key="${key}"`}>
    <td>${badge(stepLabel(outcome))}</td>
    <th scope="row">
      ${title}
      <small>${module}${always && ", always changes"}</small
      >${drawBars([piece], span)}${more.length > 0 && html`<div class="more">${more}</div>`}
    </th>
    <td class="time">+${formatDuration(Math.max(0, from - startedAt))}</td>
    <td class="time">${took}</td>
  </tr>`;
}

export interface LaneDrawing {
  readonly bars: Html;
  readonly dryRun: boolean;
  /** A process is working on the run. */
  readonly isLive?: boolean;
  /** The node waits for the answer to its own question. */
  readonly asks?: boolean;
  /** The row is open from the start. */
  readonly open?: boolean;
  /** The steps that the row opens to; without them the page's script loads them. */
  readonly body?: Html;
  /** The index of the row's steps among the packed bodies. */
  readonly packed?: number;
  /** A number that grows with each change of the row's steps. */
  readonly news?: number;
}

/** The kinds of rows, for the page's filter. */
export const laneKinds = ["failed", "changed", "ok", "open"] as const;

/** For each kind, whether the row is of it. */
export function kindsOfLane({ node, tally }: Lane): Readonly<Record<(typeof laneKinds)[number], boolean>> {
  const failed = tally.failed + tally.unreachable > 0;
  const changed = tally.changed + tally.wouldChange > 0;
  const open = node !== undefined && node.outcome !== "done" && !failed;
  return { failed, changed, open, ok: !failed && !changed && !open };
}

/** A row of the timeline: name, end, counts, bars and time; it opens to `body`. */
export function drawLane(
  lane: Lane,
  { bars, dryRun, isLive = false, asks = false, open = false, body, packed, news }: LaneDrawing,
): Html {
  const { id, name, node, tally, since } = lane;
  const has = kindsOfLane(lane);
  const isForeseen = tally.wouldChange > 0 && tally.failed === 0;
  const label =
    isForeseen && (!node || node.outcome === "done")
      ? stepLabel("would-change")
      : node
        ? nodeLabel(node, isLive, asks)
        : stepLabel(tally.failed > 0 ? "failed" : tally.changed > 0 ? "changed" : "ok");
  const differs = dryRun ? tally.wouldChange : tally.changed;
  const counts = [
    countNoun(tally.run, "step"),
    differs > 0 && `${differs} ${dryRun ? "would change" : "changed"}`,
    tally.failed > 0 && `${tally.failed} failed`,
    tally.unknown > 0 && `${tally.unknown} unknown`,
    tally.skipped > 0 && `${tally.skipped} skipped`,
  ].filter((part) => part !== false);
  return html`<details
    class="lane ${label.className}"
    id="${id}"
    data-name="${name}"
    data-kinds="${laneKinds.filter((kind) => has[kind]).join(" ")}"
    ${open && html` open`}${packed !== undefined && html` data-packed="${packed}"`}${news !== undefined && html` data-count="${news}"`}
  >
    <summary>
      <span class="name">${name}</span>${badge(label)}<span class="counts">${counts.join(" · ")}</span
      ><span class="track">${bars}</span>${
        since === undefined
          ? html`<span class="time">${formatDuration(tally.time)}</span>`
          : html`<span class="time" data-since="${since}"></span>`
      }
    </summary>
    <div class="body">${body}</div>
  </details> `;
}
