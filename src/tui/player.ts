import type { RunEvent } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import type { Timers } from "#base/timers.ts";

/** The speed of `--speed max`: all events at once. */
export const maxSpeed = 1e6;

export interface PlayerOptions {
  readonly events: readonly RunEvent[];
  /** The factor of speed, by default 1; `Infinity` draws all at once. */
  readonly speed?: number;
  readonly clock: Timers;
}

/** The view that a player draws on. */
export interface PlayerScreen {
  /** Draws the next event, in order. */
  draw(event: RunEvent): void;
  /** Draws the run as it was at the moment of a jump. */
  replace(model: RunModel): void;
}

export interface PlayerState {
  readonly playing: boolean;
  readonly speed: number;
  /** The moment that is shown, by the recording's clock: milliseconds since the epoch. */
  readonly at: number;
  /** The first event, by the same clock. */
  readonly from: number;
  /** The last event, by the same clock. */
  readonly to: number;
  /** Every event has been drawn. */
  readonly ended: boolean;
}

/** The part of a player that the keys of a replay use. */
export type PlayerControls = Pick<Player, "state" | "toggle" | "seek" | "step" | "setSpeed" | "subscribe">;

/** Milliseconds of the shortest timer; events within one are drawn together. */
const shortestTimerMs = 15;

/** Plays a recorded run: a clock that can be stopped, sped up and set. Knows neither a terminal nor a file. */
export class Player {
  readonly #events: readonly RunEvent[];
  readonly #from: number;
  /**
   * The time of each event, in milliseconds from the first; it never decreases, even if the recording's clock was set
   * back.
   */
  readonly #times: readonly number[];
  readonly #clock: Timers;
  readonly #listeners = new Set<() => void>();
  #screen: PlayerScreen | undefined;
  /** The number of drawn events. */
  #done = 0;
  /** The shown moment, in milliseconds from the first event. */
  #position = 0;
  #speed: number;
  #paused = true;
  /** The clock's time at which `#position` was right. */
  #anchor = 0;
  #cancel: () => void = () => undefined;

  constructor({ events, speed = 1, clock }: PlayerOptions) {
    this.#events = events;
    this.#speed = speed;
    this.#clock = clock;
    this.#from = events[0]?.at ?? 0;
    let latest = 0;
    this.#times = events.map(({ at }) => (latest = Math.max(latest, at - this.#from)));
  }

  /** Begins to play onto a screen. */
  start(screen: PlayerScreen): void {
    this.#screen = screen;
    this.play();
  }

  state(): PlayerState {
    const [from, length] = [this.#from, this.#times.at(-1) ?? 0];
    return {
      playing: !this.#paused,
      speed: this.#speed,
      at: from + this.#positionNow(),
      from,
      to: from + length,
      ended: this.#done === this.#events.length,
    };
  }

  /** Calls `listener` at each change except the passing of time, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Goes on; after the end, from the start. */
  play(): void {
    if (!this.#paused) return;
    if (this.#done > 0 && this.#done === this.#events.length) this.#seekTo(0);
    this.#paused = false;
    this.#anchor = this.#clock.now();
    this.#advance();
    this.#notify();
  }

  pause(): void {
    if (this.#paused) return;
    this.#rest();
    this.#notify();
  }

  toggle(): void {
    if (this.#paused) this.play();
    else this.pause();
  }

  /** Pauses and goes to the end of the next (1) or the previous (-1) step of any node; else to the end or the start. */
  step(direction: 1 | -1): void {
    this.#rest();
    const isEnd = ({ type }: RunEvent) => type === "step.finished" || type === "action.finished";
    const found =
      direction === 1
        ? this.#events.findIndex((event, index) => index >= this.#done && isEnd(event)) + 1 || this.#events.length
        : this.#events.findLastIndex((event, index) => index < this.#done - 1 && isEnd(event)) + 1 || 1;
    const index = Math.min(found, this.#events.length);
    this.#position = this.#times[index - 1] ?? 0;
    if (index > this.#done) this.#drawUpTo(index);
    else if (index < this.#done) this.#jump(index);
    this.#notify();
  }

  /** Moves forward or back by so many milliseconds of the recording. */
  seek(milliseconds: number): void {
    this.#seekTo(this.#positionNow() + milliseconds);
  }

  #seekTo(position: number): void {
    const target = Math.min(this.#times.at(-1) ?? 0, Math.max(0, position));
    const index = countUpTo(this.#times, target);
    this.#position = target;
    this.#anchor = this.#clock.now();
    if (index !== this.#done) this.#jump(index);
    if (!this.#paused) this.#advance();
    this.#notify();
  }

  setSpeed(speed: number): void {
    this.#position = this.#positionNow();
    this.#anchor = this.#clock.now();
    this.#speed = speed;
    if (!this.#paused) this.#advance();
    this.#notify();
  }

  /** Stops all timers. */
  close(): void {
    this.#rest();
    this.#screen = undefined;
    this.#listeners.clear();
  }

  #positionNow(): number {
    if (this.#paused) return this.#position;
    const passed = Math.max(0, this.#clock.now() - this.#anchor);
    const length = this.#times.at(-1) ?? 0;
    // Not a product, because Infinity times 0 ms is NaN.
    return this.#speed === Infinity ? length : Math.min(length, this.#position + passed * this.#speed);
  }

  #rest(): void {
    this.#position = this.#positionNow();
    this.#paused = true;
    this.#cancel();
  }

  /** Draws the due events and waits for the next one. */
  #advance(): void {
    this.#cancel();
    const position = this.#positionNow();
    this.#drawUpTo(Math.max(this.#done, countUpTo(this.#times, position)));
    const next = this.#times[this.#done];
    if (next === undefined) {
      this.#rest();
      this.#notify();
      return;
    }
    const wait = Math.max(shortestTimerMs, (next - position) / this.#speed);
    this.#cancel = this.#clock.after(Math.min(wait, 2 ** 30), () => this.#advance());
  }

  #drawUpTo(index: number): void {
    for (const event of this.#events.slice(this.#done, index)) this.#screen?.draw(event);
    this.#done = index;
  }

  #jump(index: number): void {
    this.#done = index;
    this.#screen?.replace(reduceEvents(this.#events.slice(0, index)));
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** The number of values up to `limit`, in a list of rising values. */
function countUpTo(rising: readonly number[], limit: number): number {
  let [low, high] = [0, rising.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rising[middle] as number) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
