import type { RunModel } from "#engine/events/run-model.ts";
import { foresee, tellNodes, type Foreseen } from "../foreseen.ts";
import { Budget, drawChanges, drawDiff } from "./details.ts";
import { html, type Html, type Part } from "./html.ts";
import { badge, count, stepLabel } from "./labels.ts";

/** The most steps listed here; the nodes' rows show the rest. */
const MANY = 200;

/** The plan of a dry run: each change with its diff, once for all nodes with the same change; then unknown steps with their reasons. */
export function drawForesight(model: RunModel): Part {
  if (!model.dryRun) return undefined;
  const { changes, unknown } = foresee(model);
  if (changes.length + unknown.length === 0) return undefined;
  const budget = new Budget(400_000);
  const some = [...changes, ...unknown].slice(0, MANY);
  const rest = changes.length + unknown.length - some.length;
  return html`<section class="foresight" aria-labelledby="foresight">
    <h2 id="foresight">What would change</h2>
    ${some.map((one, index) => drawOne(one, index < changes.length, budget))}
    ${rest > 0 && html`<p>${count(rest, "more step")}: see the nodes below.</p>`}
  </section>`;
}

function drawOne(
  { stage, title, module, nodes, changes, diff, reason }: Foreseen,
  would: boolean,
  budget: Budget,
): Html {
  return html`<article class="card">
    <h3>
      ${badge(stepLabel(would ? "would-change" : "unknown"))} ${stage !== title && `${stage}: `}${title}
      ${module !== title && html`<small>${module}</small>`}
    </h3>
    <p>${tellNodes(nodes)}</p>
    ${reason && html`<p class="reason">${reason}</p>`}${drawChanges(changes, budget)}${drawDiff(diff, budget)}
  </article>`;
}
