import type { RunEvent } from "#engine/events/event.ts";
import { lastLines } from "#engine/events/whole-lines.ts";
import type { Work } from "./work-item.ts";

/** Characters of one step's output in a report, and of all outputs (docs/reading-a-run.md, Kept output). */
const ofStep = 1 << 20;
const ofAll = 64 << 20;

/** The output of each step and action, from a run's events: the model keeps the last lines alone. */
export class WholeOutputs {
  readonly #found = new Map<string, { text: string; lines: number }>();
  #left = ofAll;

  constructor(events: readonly RunEvent[]) {
    for (const event of events) {
      // A step that begins again, in a resumed run or after a reboot, replaces its former output.
      if (event.type === "step.started" || event.type === "action.started") this.#found.delete(outputKey(event));
      if (event.type !== "step.output" && event.type !== "action.output") continue;
      const key = outputKey(event);
      const { text, lines } = this.#found.get(key) ?? { text: "", lines: 0 };
      const whole = text + event.text;
      // Cut seldom: each cut copies the rest.
      const kept = whole.length > 2 * ofStep ? lastLines(whole, ofStep) : whole;
      this.#found.set(key, { text: kept, lines: lines + linesIn(event.text) });
    }
  }

  /** The output of a step (of this node) or of an action. */
  of(work: Work, node = ""): string {
    return this.#take("step" in work ? outputKey({ node, step: work.step }) : outputKey(work), work);
  }

  /** The end of the output in whole lines, and the number of lines before; beyond the limit of a report, the lines in the model. */
  #take(key: string, { tail, above = 0 }: Work): string {
    const { text, lines } = this.#found.get(key) ?? { text: "", lines: 0 };
    const kept = lastLines(text, ofStep);
    const isTooMuch = kept.length > this.#left;
    const shown = isTooMuch ? tail : kept;
    if (!isTooMuch) this.#left -= kept.length;
    const before = isTooMuch ? above : lines - linesIn(shown);
    return `${before > 0 ? `… ${before} lines before: the record has them\n` : ""}${shown.trimEnd()}`;
  }
}

function linesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

type Place =
  | { readonly node: string; readonly step: string }
  | { readonly stage: string; readonly action: string; readonly item?: string };

function outputKey(work: Place): string {
  return JSON.stringify("step" in work ? [work.node, work.step] : [work.stage, work.action, work.item]);
}
