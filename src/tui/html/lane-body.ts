import { formatDuration } from "#base/units.ts";
import type { NodeModel, RunModel } from "#engine/events/run-model.ts";
import { causeFirst } from "../cause-line.ts";
import { savedText, sendingText, sentText } from "../describe-event.ts";
import { waitsFor } from "../waits-for.ts";
import { drawBars, type Span } from "./bars.ts";
import type { Budget } from "./budget.ts";
import { drawChanges, drawDiff, drawFactRows, drawOutput, drawProblem, type Fact } from "./details.ts";
import { html, type Html, type Part } from "./html.ts";
import type { Lane, Piece } from "./work.ts";
import { badge, tellStep } from "./words.ts";

export interface BodyOptions {
  readonly model: RunModel;
  readonly span: Span;
  readonly budget: Budget;
  /** Where the node's log lies, or the bastion's. */
  readonly log?: string;
  /** Its rows are known by a key, so that a page which draws them again keeps what its reader opened. */
  readonly keyed?: boolean;
}

/** What a node's row opens to: a table of its steps, with what each changed, printed, or failed of. */
export function drawLaneBody(
  { name, node, pieces }: Lane,
  { model, span, budget, log, keyed = false }: BodyOptions,
): Html {
  const titles = new Map(model.stages.map(({ id, title }) => [id, title]));
  // By stage, then by time: what is skipped from the start is told all at once, in the middle of other stages.
  const order = new Map(model.stages.map(({ id }, index) => [id, index]));
  const sorted = pieces.toSorted((a, b) => (order.get(a.stage) ?? 0) - (order.get(b.stage) ?? 0) || a.from - b.from);
  const groups: { stage: string; pieces: Piece[] }[] = [];
  for (const piece of sorted) {
    const last = groups.at(-1);
    if (last?.stage === piece.stage) last.pieces.push(piece);
    else groups.push({ stage: piece.stage, pieces: [piece] });
  }
  const several =
    groups.length > 1 || groups.some(({ pieces: [first] }) => first?.title !== titles.get(first?.stage ?? ""));
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
            ({ stage, pieces: own }) =>
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
  const { title, kind, outcome, from, to, step, action } = piece;
  const { reason } = step ?? action ?? {};
  const problem = causeFirst((step ?? action)?.problem, step?.exitStatus);
  const always = step?.always === true && (outcome === "changed" || outcome === "would-change");
  const note = outcome === undefined ? (step ?? action)?.note : undefined;
  const work = step ?? action;
  const at = work?.position;
  const failed = outcome === "failed";
  const more = [
    reason && html`<p class="reason">${reason}</p>`,
    note && html`<p class="reason">${note}</p>`,
    problem && drawProblem(problem.at === undefined && at ? { ...problem, at } : problem),
    step && drawChanges(step.changes, budget),
    step && drawDiff(step.diff, budget),
    work && drawOutput({ title, ...work }, budget, failed && !problem?.detail),
  ].filter((part) => part !== undefined && part !== false && part !== "");
  const key = step ? `${step.stage} ${step.step}` : undefined;
  return html`<tr class="${tellStep(outcome).look}" ${keyed && key !== undefined && html` data-key="${key}"`}>
    <td>${badge(tellStep(outcome))}</td>
    <th scope="row">
      ${title}
      <small>${kind}${always && ", always changes"}</small
      >${drawBars([piece], span)}${more.length > 0 && html`<div class="more">${more}</div>`}
    </th>
    <td class="time">+${formatDuration(Math.max(0, from - startedAt))}</td>
    <td class="time">${took(piece, to - from)}</td>
  </tr>`;
}

function took({ step, action }: Piece, time: number): string {
  return (step ?? action)?.duration === undefined && (step ?? action)?.outcome !== undefined
    ? "–"
    : formatDuration(time);
}
