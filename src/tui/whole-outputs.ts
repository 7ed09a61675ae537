import type { RunEvent } from "#engine/events/event.ts";
import type { ActionModel, StepModel } from "#engine/events/run-model.ts";
import { lastLines } from "#engine/events/whole-lines.ts";

/** Characters of what one step printed that a report has, and of what all of them did (docs/reading-a-run.md, Kept output). */
const ofStep = 1 << 20;
const ofAll = 64 << 20;

type Printed = Pick<StepModel, "tail" | "above">;

/** What each step and action printed, from a run's events: the model keeps the last lines alone. */
export class WholeOutputs {
  readonly #found = new Map<string, { text: string; lines: number }>();
  #left = ofAll;

  constructor(events: readonly RunEvent[]) {
    for (const event of events) {
      // What comes again, in a resumed run or after a reboot, takes the place of what was cut off.
      if (event.type === "step.started" || event.type === "action.started") this.#found.delete(keyOf(event));
      if (event.type !== "step.output" && event.type !== "action.output") continue;
      const key = keyOf(event);
      const { text, lines } = this.#found.get(key) ?? { text: "", lines: 0 };
      const whole = text + event.text;
      // Seldom: each cut copies what stays.
      const kept = whole.length > 2 * ofStep ? lastLines(whole, ofStep) : whole;
      this.#found.set(key, { text: kept, lines: lines + linesIn(event.text) });
    }
  }

  ofStep(node: string, step: StepModel): string {
    return this.#take(keyOf({ node, step: step.step }), step);
  }

  ofAction(action: ActionModel): string {
    return this.#take(keyOf(action), action);
  }

  /** The end of it, whole lines, and how many stand before. When all that a report may hold is used up, what the model keeps. */
  #take(key: string, { tail, above = 0 }: Printed): string {
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

function keyOf(work: Place): string {
  return JSON.stringify("step" in work ? [work.node, work.step] : [work.stage, work.action, work.item]);
}
