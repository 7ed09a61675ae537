import type { RunEvent } from "#engine/events/event.ts";
import { quantile } from "./run-stats.ts";

/** The pace of an earlier run that did all its work. */
export interface RunPace {
  readonly nodes: number;
  /** Milliseconds from its start until so many steps and actions had ended: one, two, … */
  readonly ends: readonly number[];
  /** Milliseconds from its start to its end. */
  readonly whole: number;
}

/** The progress of a run. */
export interface Position {
  readonly nodes: number;
  /** Steps and actions that have ended. */
  readonly ended: number;
  /** Milliseconds since its start. */
  readonly elapsed: number;
}

/**
 * Milliseconds that a run still takes at the pace of earlier runs. Only runs count that needed half to twice the time to
 * get as far. Undefined without such a run, or if they disagree: for example, a first run on bare machines and a run that
 * changed nothing.
 */
export function timeLeft(paces: readonly RunPace[], { nodes, ended, elapsed }: Position): number | undefined {
  const left = paces.flatMap(({ nodes: those, ends, whole }) => {
    if (those !== nodes || ended > ends.length) return [];
    // The earlier run was equally far between the end of that step and the end of the next one.
    const at = Math.min(Math.max(elapsed, ends[ended - 1] ?? 0), ends[ended] ?? whole);
    const isAlike = elapsed >= at / 2 - slack && elapsed <= at * 2 + slack;
    return isAlike ? [whole - at] : [];
  });
  const [low = 0, middle, high = 0] = [0.25, 0.5, 0.75].map((share) => quantile(left, share));
  return high > 2 * low + slack ? undefined : middle;
}

/** Milliseconds by which even short runs of the same kind may differ. */
const slack = 3000;

/** “about 40 s left”, rounded to the precision of the estimate. */
export function formatTimeLeft(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 7.5) return "a few seconds left";
  if (seconds < 57.5) return `about ${Math.round(seconds / 5) * 5} s left`;
  if (seconds < 90) return "about a minute left";
  if (seconds < 90 * 60) return `about ${Math.round(seconds / 60)} min left`;
  return `about ${Math.round(seconds / 3600)} h left`;
}

/** Reads the pace of a run from its events. */
export class PaceReading {
  #startedAt: number | undefined;
  #nodes = 0;
  readonly #ends: number[] = [];
  #whole: number | undefined;
  /** Whether the run was stopped or resumed, or waited for an answer: its time is no measure for others. */
  #isOdd = false;

  /** The pace of the run; undefined unless it did all its work at one go. */
  get pace(): RunPace | undefined {
    if (this.#isOdd || this.#whole === undefined) return undefined;
    return { nodes: this.#nodes, ends: this.#ends, whole: this.#whole };
  }

  add(event: RunEvent): void {
    switch (event.type) {
      case "run.started":
        if (this.#startedAt !== undefined || event.resumed) this.#isOdd = true;
        this.#startedAt ??= event.at;
        this.#nodes = event.nodes.length;
        return;
      case "step.finished":
      case "action.finished":
        if (event.outcome !== "interrupted" && this.#startedAt !== undefined)
          this.#ends.push(event.at - this.#startedAt);
        return;
      case "run.finished":
        if (event.outcome !== "done" || this.#startedAt === undefined) this.#isOdd = true;
        else this.#whole = event.at - this.#startedAt;
        return;
      case "question.asked":
      case "run.stopping":
        this.#isOdd = true;
        return;
      default:
    }
  }
}

/** Matches events that count for the pace; the others of a long record need not be parsed. */
export const paceEvents = /"type":"(?:(?:run|step|action)\.finished|run\.(?:started|stopping)|question\.asked)"/;
