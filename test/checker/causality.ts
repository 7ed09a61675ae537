import type { History, Write } from "./history.ts";

/**
 * The order in which writes had seen one another, as far as an observer can know. Controllers do not tell when they receive a write, so the answers are
 * “surely”, “surely not”, and neither.
 */
export class Causality {
  readonly #history: Pick<History, "cuts" | "agreed" | "setBacks">;

  constructor(history: Pick<History, "cuts" | "agreed" | "setBacks">) {
    this.#history = history;
  }

  /** Whether `later` was surely made with knowledge of `earlier`, directly and not through a third write. */
  surelySaw(later: Write, earlier: Write): boolean {
    if (later === earlier || later.outcome === "refused" || earlier.outcome === "refused") return false;
    // Values are unique, decisions are not.
    const isRead = !earlier.key.startsWith("decision/") && later.key === earlier.key && later.read === earlier.value;
    if (isRead && earlier.value !== null && earlier.began < later.began) return true;
    if (earlier.outcome !== "ok" || earlier.ended >= later.began) return false;
    if (later.at === earlier.at) return !this.#wasSetBack(later.at, earlier.ended, later.began);
    return (
      this.#history.agreed.some((moment) => earlier.ended < moment && moment < later.began) &&
      !this.#wasSetBack(later.at, earlier.ended, later.began)
    );
  }

  /** Whether `later` was surely made without knowledge of `earlier`. */
  surelyDidNotSee(later: Write, earlier: Write): boolean {
    const isOver = later.outcome === "ok";
    if (isOver && later.ended < earlier.began) return true;
    const sideOf = (sides: readonly (readonly number[])[], at: number): number =>
      sides.findIndex((side) => side.includes(at));
    return this.#history.cuts.some(
      ({ from, to, sides }) =>
        isOver && earlier.began > from && later.ended < to && sideOf(sides, earlier.at) !== sideOf(sides, later.at),
    );
  }

  areConcurrent(a: Write, b: Write): boolean {
    return this.surelyDidNotSee(a, b) && this.surelyDidNotSee(b, a);
  }

  /** Between two moments the controller ran on an old copy: its earlier writes are uncertain until it agreed with its peers again. */
  #wasSetBack(at: number, since: number, until: number): boolean {
    return this.#history.setBacks.some(
      (back) => back.at === at && back.from > since && back.from < until && until < back.to,
    );
  }
}

/** All of `writes` that saw `first` for certain, directly or through others. */
export function successorsOf(first: Write, writes: readonly Write[], causality: Causality): ReadonlySet<Write> {
  const found = new Set<Write>();
  const waiting = [first];
  for (let from = waiting.pop(); from; from = waiting.pop())
    for (const write of writes)
      if (!found.has(write) && write !== first && causality.surelySaw(write, from)) {
        found.add(write);
        waiting.push(write);
      }
  return found;
}
