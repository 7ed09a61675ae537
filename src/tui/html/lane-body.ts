import { formatDuration } from "#base/units.ts";
import type { NodeModel, RunModel } from "#engine/events/run-model.ts";
import { causeFirst } from "../cause-line.ts";
import { savedText, sendingText, sentText } from "../describe-event.ts";
import { waitsFor } from "../waits-for.ts";
import { drawBars, type Span } from "./bars.ts";
import { drawChanges, drawDiff, drawFactRows, drawOutput, drawProblem, type Budget, type Fact } from "./details.ts";
import { html, type Html, type Part } from "./html.ts";
import type { Lane, Piece } from "./work.ts";
import { badge, stepLabel } from "./labels.ts";

export interface BodyOptions {
  readonly model: RunModel;
  readonly span: Span;
  readonly budget: Budget;
  /** The path of the node's log, or of the bastion's. */
  readonly log?: string;
  /** Rows have keys, so that a page that draws them again keeps the ones that its reader opened. */
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
  const placeOf = ({ item: { stage } }: Piece) => order.get(stage) ?? 0;
  const sorted = pieces.toSorted((a, b) => placeOf(a) - placeOf(b) || a.from - b.from);
  const groups = [...Map.groupBy(sorted, ({ item: { stage } }) => stage)];
  const several = groups.length > 1 || groups.some(([stage, [first]]) => first?.title !== titles.get(stage));
  return html`${drawFacts(node, log, node && waitsFor(model, node.name))}${
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

function drawFacts(node: Lane["node"], log: string | undefined, waits: string | undefined): Part {
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
  const told = steps.some(({ outcome }) => outcome === "failed");
  const isAtWork = steps.some(({ outcome }) => outcome === undefined);
  const rows: readonly Fact[] = [
    ["Milestone", milestone],
    ["Host key", fingerprint && html`<code>${fingerprint}</code>`],
    ["Round trips", exchanges > 0 && String(exchanges)],
    ["Saved", saved.map(savedText).join("; ")],
    ["Sent", sent.map(sentText).join("; ")],
    ["State", reason ?? (sending ? sendingText(sending) : isAtWork ? undefined : waits)],
    ["Log", log !== undefined && html`<code>${log}</code>`],
  ];
  if (rows.every(([, value]) => !value)) return undefined;
  return html`${problem && !told && drawProblem(problem)}
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
    problem && drawProblem(problem.at === undefined && at ? { ...problem, at } : problem),
    drawChanges(changes, budget),
    drawDiff(diff, budget),
    drawOutput({ ...item, title }, budget, outcome === "failed" && !problem?.detail),
  ].filter((part) => part !== undefined && part !== false && part !== "");
  const took = item.duration === undefined && outcome !== undefined ? "–" : formatDuration(to - from);
  return html`<tr class="${stepLabel(outcome).look}" ${keyed && html` data-key="${key}"`}>
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
