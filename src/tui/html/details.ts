import type { Problem, SourcePosition } from "#errors/problem.ts";
import type { Change } from "#engine/events/event.ts";
import type { WorkItem } from "../work-item.ts";
import { lastLines } from "#engine/events/whole-lines.ts";
import { html, type Html, type HtmlValue } from "./html.ts";

/** A limit of characters for texts from nodes, so that a page stays small. */
export class Budget {
  #left: number;

  constructor(characters: number) {
    this.#left = characters;
  }

  /** The last whole lines of a text, as far as characters are left; undefined when fewer than 400 are left for a longer text. */
  end(text: string): string | undefined {
    return this.#take(text, (length) => lastLines(text, length));
  }

  /** The start of a text, under the same rule. */
  start(text: string): string | undefined {
    return this.#take(text, (length) => text.slice(0, length));
  }

  #take(text: string, cut: (length: number) => string): string | undefined {
    if (text.length <= this.#left) {
      this.#left -= text.length;
      return text;
    }
    // A few characters would be of no use.
    if (this.#left < 400) return undefined;
    const length = this.#left;
    this.#left = 0;
    return cut(length);
  }
}

/** Most characters of a change's value. */
const longestValue = 400;

/** A name and its value; a row without a value is left out. */
export type FactRow = readonly [name: string, value: HtmlValue];

/** The rows of a `dl`. */
export function drawFactRows(facts: readonly FactRow[]): readonly Html[] {
  return facts.flatMap(([name, value]) =>
    value
      ? [
          html`<div>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
        ]
      : [],
  );
}

/** Changes: name, present value, wanted value. */
export function drawChanges(changes: readonly Change[], budget: Budget): HtmlValue {
  if (changes.length === 0) return undefined;
  const rows = changes.map(({ name, have, want }) => {
    const values = budget.start(`${have ?? ""}${want}`) === undefined ? undefined : ([have, want] as const);
    if (values === undefined) return undefined;
    return html`<li>
      <b>${name}</b> <span class="have">${have === undefined ? "(absent)" : value(have)}</span>
      <span class="to" aria-label="wanted:">${"→"}</span> <span class="want">${value(want)}</span>
    </li>`;
  });
  return html`<ul class="changes">
    ${rows}
  </ul>`;
}

function value(text: string): string {
  if (text === "") return "(empty)";
  return text.length > longestValue ? `${text.slice(0, longestValue)}…` : text;
}

/** A unified diff with coloured lines, which keep their signs. */
export function drawDiff(diff: string | undefined, budget: Budget): HtmlValue {
  if (!diff) return undefined;
  const shown = budget.start(diff);
  if (shown === undefined) return html`<p class="gone">The diff is left out here; the node's log has it.</p>`;
  const lines = shown.replace(/\n$/, "").split("\n").map(drawLine);
  return html`<pre class="diff" tabindex="0" aria-label="Difference of the file">
${lines}${shown.length < diff.length && "…\n"}</pre>`;
}

function drawLine(line: string): HtmlValue {
  if (/^(---|\+\+\+|@@)/.test(line)) return html`<span class="where">${line}</span>`;
  if (line.startsWith("+")) return html`<ins>${line}</ins>`;
  if (line.startsWith("-")) return html`<del>${line}</del>`;
  return html`<span>${line}</span>`;
}

/** The last lines of a step's output. */
export function drawOutput(
  { tail, above = 0, title }: Pick<WorkItem, "tail" | "above" | "title">,
  budget: Budget,
  open: boolean,
): HtmlValue {
  const text = tail.trimEnd();
  if (text === "") return undefined;
  const shown = budget.end(text);
  if (shown === undefined) return html`<p class="gone">The output is left out here; the node's log has it.</p>`;
  const lines = shown.split("\n").length;
  const all = above + text.split("\n").length;
  return html`<details class="output" ${open && html` open`}>
    <summary>
      Output${lines > 1 && html` <small>${lines < all && "last "}${lines}${lines < all && ` of ${all}`} lines</small>`}
    </summary>
    <pre tabindex="0" aria-label="Output of ${title}">${shown}</pre>
  </details>`;
}

/** A problem as in a terminal: message, position with its source line, detail, hint. */
export function drawProblemCard(problem: Problem, sourceLine?: (at: SourcePosition) => string | undefined): Html {
  const { code, message, at, detail, hint, conceal } = problem;
  const source = at && conceal !== true ? sourceLine?.(at) : undefined;
  return html`<div class="problem">
    <p class="message">${message} <code class="code">${code}</code></p>
    ${at && html`<p class="at"><code>${at.file}:${at.line}:${at.column}</code></p>`}${at && source !== undefined && drawSource(at, source)}${detail && html`<pre tabindex="0" aria-label="Details">${detail.replace(/\n+$/, "")}</pre>`}${hint && html`<p class="hint"><b>Hint:</b> ${hint}</p>`}
  </div>`;
}

function drawSource({ line, column, length = 1 }: SourcePosition, text: string): Html {
  const [start, end] = [column - 1, column - 1 + Math.max(1, length)];
  return html`<pre
    class="source"
  ><span class="line" aria-hidden="true">${line}</span>${text.slice(0, start)}<mark>${text.slice(start, end)}</mark>${text.slice(end, end + 160)}</pre>`;
}
