import type { SoftEntry } from "./messages.ts";
import type { Json } from "./replica.ts";

interface Held extends SoftEntry {
  readonly receivedMono: number;
}

/**
 * Soft state: what is true only for a while (when a node was last heard). The newest (boot, seq) of a key wins; it is never
 * journaled, and gone after a restart until it is told again.
 */
export class SoftState {
  readonly #held = new Map<string, Held>();
  readonly #mono: () => number;
  readonly #spread: (entries: readonly SoftEntry[]) => void;

  constructor(mono: () => number, spread: (entries: readonly SoftEntry[]) => void) {
    this.#mono = mono;
    this.#spread = spread;
  }

  share(key: string, boot: number, seq: number, value: Json): void {
    const entry = { key, boot, seq, text: JSON.stringify(value) };
    if (this.#take(entry)) this.#spread([entry]);
  }

  /** From a peer; not passed on: who was not reached hears the next one. */
  received(entries: readonly SoftEntry[]): void {
    for (const entry of entries) this.#take(entry);
  }

  /** All that is held, for a peer that has just been met. */
  *pages(): Iterable<readonly SoftEntry[]> {
    const all = Array.from(this.#held.values(), ({ key, boot, seq, text }) => ({ key, boot, seq, text }));
    for (let at = 0; at < all.length; at += 500) yield all.slice(at, at + 500);
  }

  #take(entry: SoftEntry): boolean {
    const known = this.#held.get(entry.key);
    if (known && (known.boot > entry.boot || (known.boot === entry.boot && known.seq >= entry.seq))) return false;
    this.#held.set(entry.key, { ...entry, receivedMono: this.#mono() });
    return true;
  }

  *entries(): Iterable<{ readonly key: string; readonly text: string; readonly receivedMono: number }> {
    for (const { key, text, receivedMono } of this.#held.values()) yield { key, text, receivedMono };
  }
}
