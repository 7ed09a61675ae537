import type { Asker } from "#engine/step/blob.ts";

type Progress = Parameters<Asker["tell"]>[0];

/** Milliseconds between two tellings, at least. */
const tellEvery = 5_000;

/** One fetch for all steps that ask for it while it goes on. It ends when none waits for it any more. */
export class SharedFetch {
  /** Settles when it is over. */
  readonly ended: Promise<void>;
  readonly #askers = new Set<Asker>();
  readonly #end = new AbortController();
  readonly #began = Date.now();
  #last: Progress | undefined;
  #toldAt = 0;

  constructor(work: (signal: AbortSignal, tell: Asker["tell"]) => Promise<void>) {
    this.ended = work(this.#end.signal, (progress) => this.#tell(progress));
  }

  /** No step waits for it any more: it is being ended. */
  get isLeft(): boolean {
    return this.#end.signal.aborted;
  }

  /** Resolves when all of it is here; rejects when the asker waits no more. */
  async join(asker: Asker): Promise<void> {
    const { signal } = asker;
    const { promise: left, reject } = Promise.withResolvers<never>();
    const leave = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", leave);
    this.#askers.add(asker);
    if (this.#last) asker.tell(this.#last);
    try {
      await Promise.race([this.ended, left]);
    } finally {
      signal.removeEventListener("abort", leave);
      this.#askers.delete(asker);
      if (this.#askers.size === 0) this.#end.abort();
    }
  }

  /** At its beginning, then now and then: an hour's fetch must not fill the record. */
  #tell(progress: Progress): void {
    const now = Date.now();
    this.#last = progress;
    if (now - this.#toldAt < Math.max(tellEvery, (now - this.#began) / 20)) return;
    this.#toldAt = now;
    for (const { tell } of this.#askers) tell(progress);
  }
}
