import type { RunModel } from "#engine/events/run-model.ts";
import type { SourcePosition } from "#errors/problem.ts";
import { failuresOf, type RunFailure } from "../failures.ts";
import { Budget, drawOutput, drawProblemCard, drawChanges, drawDiff } from "./details.ts";
import { html, type Html, type HtmlValue } from "./html.ts";
import { countNoun, badge, stepLabel } from "./labels.ts";
import type { Lane } from "./work.ts";
import { planOf, formatNodes, type DryRunStep } from "../dry-run-plan.ts";

/** Most causes with a card; the nodes' rows show the others. */
const mostCards = 100;
const mostNames = 60;

type SourceLine = (at: SourcePosition) => string | undefined;

/** The first cause of each failure, without its consequences; nodes that failed alike share one card. Undefined without failures. */
export function drawFailures(model: RunModel, lanes: readonly Lane[], sourceLine?: SourceLine): HtmlValue {
  const failures = failuresOf(model);
  if (failures.length === 0) return undefined;
  const ids = new Map(lanes.map(({ name, id }) => [name, id]));
  const budget = new Budget(400_000);
  // The run's own problem comes first.
  const [own, others] = [
    failures.filter(({ nodes }) => nodes.length === 0),
    failures.filter(({ nodes }) => nodes.length > 0),
  ];
  return html`<section class="failures" aria-labelledby="failures">
    <h2 id="failures">What went wrong</h2>
    ${own.map(
      ({ problem }) =>
        html`<article class="card failed">
          <h3>The run itself</h3>
          ${drawProblemCard(problem, sourceLine)}
        </article>`,
    )}
    ${others.slice(0, mostCards).map((failure) => drawFailure(failure, ids, budget, sourceLine))}
    ${others.length > mostCards && html`<p>${countNoun(others.length - mostCards, "more cause")}: see the nodes below.</p>`}
  </section>`;
}

function drawFailure(
  { title, module, nodes, problem, cause, item }: RunFailure,
  ids: ReadonlyMap<string, string>,
  budget: Budget,
  sourceLine?: SourceLine,
): Html {
  const named = nodes.slice(0, mostNames).map((name) => html`<li><a href="#${ids.get(name)}">${name}</a></li>`);
  return html`<article class="card failed">
    <h3>${title} ${module !== undefined && html`<small>${module}</small>`}</h3>
    <ul class="nodes" aria-label="Nodes">
      ${named}${nodes.length > mostNames && html`<li>and ${nodes.length - mostNames} more</li>`}
    </ul>
    ${nodes.length > 1 && html`<p class="gone">${countNoun(nodes.length, "node")} failed the same way; ${nodes[0]} is shown.</p>`}
    ${drawProblemCard({ ...problem, message: cause }, sourceLine)}${item && drawOutput(item, budget, !problem.detail)}
  </article>`;
}

export function drawWarnings({ warnings }: RunModel): HtmlValue {
  if (warnings.length === 0) return undefined;
  const shown = warnings.slice(0, 500);
  return html`<section aria-labelledby="warnings">
    <h2 id="warnings">Warnings</h2>
    <ul class="warnings">
      ${shown.map(({ node, text }) => html`<li>${node !== undefined && html`<b>${node}</b> `}${text}</li>`)}${warnings.length > shown.length && html`<li>and ${warnings.length - shown.length} more</li>`}
    </ul>
  </section>`;
}

/** Most steps of a dry run's plan; the nodes' rows show the others. */
const mostSteps = 200;

/** The plan of a dry run: each change with its diff, once for all nodes with the same change; then unknown steps with their reasons. */
export function drawForesight(model: RunModel): HtmlValue {
  if (!model.dryRun) return undefined;
  const { changes, unknown } = planOf(model);
  if (changes.length + unknown.length === 0) return undefined;
  const budget = new Budget(400_000);
  const some = [...changes, ...unknown].slice(0, mostSteps);
  const rest = changes.length + unknown.length - some.length;
  return html`<section class="foresight" aria-labelledby="foresight">
    <h2 id="foresight">What would change</h2>
    ${some.map((one, index) => drawDryRunStep(one, index < changes.length, budget))}
    ${rest > 0 && html`<p>${countNoun(rest, "more step")}: see the nodes below.</p>`}
  </section>`;
}

function drawDryRunStep(
  { stage, title, module, nodes, changes, diff, reason }: DryRunStep,
  would: boolean,
  budget: Budget,
): Html {
  return html`<article class="card">
    <h3>
      ${badge(stepLabel(would ? "would-change" : "unknown"))} ${stage !== title && `${stage}: `}${title}
      ${module !== title && html`<small>${module}</small>`}
    </h3>
    <p>${formatNodes(nodes)}</p>
    ${reason && html`<p class="reason">${reason}</p>`}${drawChanges(changes, budget)}${drawDiff(diff, budget)}
  </article>`;
}
