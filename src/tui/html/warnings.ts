import type { RunModel } from "#engine/events/run-model.ts";
import { html, type Part } from "./html.ts";

/** What the run warned of; nothing where it did not. */
export function drawWarnings({ warnings }: RunModel): Part {
  if (warnings.length === 0) return undefined;
  const shown = warnings.slice(0, 500);
  return html`<section aria-labelledby="warnings">
    <h2 id="warnings">Warnings</h2>
    <ul class="warnings">
      ${shown.map(({ node, text }) => html`<li>${node !== undefined && html`<b>${node}</b> `}${text}</li>`)}${warnings.length > shown.length && html`<li>and ${warnings.length - shown.length} more</li>`}
    </ul>
  </section>`;
}
