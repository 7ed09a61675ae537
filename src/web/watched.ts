import { Board } from "./board.ts";

type Parts = readonly (readonly [id: string, html: string])[];

/** A board whose parts are looked up again and again while somebody reads it. */
export class Watched {
  readonly board = new Board();
  readonly #draw: () => Promise<Parts> | Parts;
  readonly #timer: NodeJS.Timeout;
  #isLooking = false;

  /** `every`: milliseconds between two looks. What cannot be looked up stays as it was. */
  constructor(draw: () => Promise<Parts> | Parts, every: number) {
    this.#draw = draw;
    this.#timer = setInterval(() => void (this.board.isRead && this.look()), every).unref();
  }

  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      this.board.show(await this.#draw());
    } catch {
      // The next look may find it again.
    } finally {
      this.#isLooking = false;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
