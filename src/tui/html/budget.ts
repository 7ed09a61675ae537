import { lastLines } from "#engine/events/whole-lines.ts";

/** Characters of texts that only the nodes decide the length of; so a page stays small whatever they print. */
export class Budget {
  #left: number;

  constructor(characters: number) {
    this.#left = characters;
  }

  /** The end of a text, or as much of it as is left; undefined when nothing is. */
  end(text: string): string | undefined {
    return this.#take(text, (length) => lastLines(text, length));
  }

  /** The start of a text, likewise. */
  start(text: string): string | undefined {
    return this.#take(text, (length) => text.slice(0, length));
  }

  #take(text: string, cut: (length: number) => string): string | undefined {
    if (text.length <= this.#left) {
      this.#left -= text.length;
      return text;
    }
    // A handful of characters would tell nothing.
    if (this.#left < 400) return undefined;
    const length = this.#left;
    this.#left = 0;
    return cut(length);
  }
}
