import type { PlayerClock } from "#tui/player.ts";

/** Time that passes only when told; timers fire in their order. */
export class FakeClock implements PlayerClock {
  #now = 0;
  readonly #timers = new Set<{ readonly at: number; readonly work: () => void }>();

  readonly now = () => this.#now;

  readonly later = (work: () => void, milliseconds: number) => {
    const timer = { at: this.#now + milliseconds, work };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  };

  /** How many timers are set. */
  get waiting(): number {
    return this.#timers.size;
  }

  pass(milliseconds: number): void {
    const end = this.#now + milliseconds;
    for (;;) {
      const due = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.#timers.delete(due);
      this.#now = due.at;
      due.work();
    }
    this.#now = end;
  }
}
