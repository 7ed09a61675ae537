import { randomBytes } from "node:crypto";

/** What a page is told of a board: the parts that are new to it, by their elements' ids, and how far it knows the board then. */
export interface News {
  readonly version: string;
  readonly parts: readonly (readonly [id: string, html: string])[];
}

/**
 * The parts of a page that change while somebody looks at it. Each has a number of when it changed last, so that a page
 * is told what is new to it, however late it asks, and nobody keeps what another page knows.
 */
export class Board {
  /** Numbers of another board, of an earlier process say, mean nothing here. */
  readonly #id = randomBytes(6).toString("hex");
  readonly #parts = new Map<string, { html: string; at: number }>();
  readonly #readers = new Set<() => void>();
  #at = 0;

  get version(): string {
    return `${this.#id}.${this.#at}`;
  }

  /** Somebody waits for news. */
  get isRead(): boolean {
    return this.#readers.size > 0;
  }

  /** Takes the page as it is now; those who read it are called if something in it is new. */
  show(parts: Iterable<readonly [id: string, html: string]>): void {
    const at = this.#at + 1;
    for (const [id, html] of parts) {
      const known = this.#parts.get(id);
      if (known?.html === html) continue;
      this.#parts.set(id, { html, at });
      this.#at = at;
    }
    if (this.#at === at) for (const call of this.#readers) call();
  }

  /** What is new to whoever knows this version; everything, where it is none of this board's. */
  since(version: string): News {
    const [id, text] = version.split(".");
    const known = id === this.#id ? Number(text) || 0 : 0;
    const parts: [id: string, html: string][] = [];
    for (const [name, { html, at }] of this.#parts) if (at > known) parts.push([name, html]);
    return { version: this.version, parts };
  }

  /** Calls back after each change until the function that it gives is called. */
  read(onNews: () => void): () => void {
    this.#readers.add(onNews);
    return () => this.#readers.delete(onNews);
  }
}
