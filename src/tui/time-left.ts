import type { RunEvent } from "#engine/events/event.ts";
import { quantile } from "./run-stats.ts";

/** The pace of an earlier run that did all its work. Times are in milliseconds from its start. */
export interface RunPace {
  readonly nodes: number;
  /** The end of each step or action, in the order of ends. */
  readonly ends: readonly number[];
  /** The end of the run. */
  readonly whole: number;
}

/** How far a run has got. */
export interface Position {
  readonly nodes: number;
  /** Steps and actions that have ended. */
  readonly ended: number;
  /** Milliseconds since its start. */
  readonly elapsed: number;
}

/**
 * Milliseconds that a run still takes at the pace of earlier runs. Only runs count that had as many nodes and needed half to
 * twice the time to get as far. Undefined without such a run, or if these runs disagree, such as a first run on bare machines
 * and a run that changed nothing.
 */
export function timeLeft(paces: readonly RunPace[], { nodes, ended, elapsed }: Position): number | undefined {
  const left = paces.flatMap(({ nodes: count, ends, whole }) => {
    if (count !== nodes || ended > ends.length) return [];
    // The earlier run was equally far from the end of its step number `ended` to the end of its next step.
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
  /** Whether the run was stopped or resumed, or waited for an answer: its time is no measure for other runs. */
  #isOdd = false;

  /** The pace of the run; undefined unless the run did all its work at one go. */
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

/** Matches the lines of a record that `PaceReading` needs, so that a reader need not parse the others. */
export const paceEvents = /"type":"(?:(?:run|step|action)\.finished|run\.(?:started|stopping)|question\.asked)"/;
