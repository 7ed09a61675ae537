/** Gives its slots to at most `limit` holders at a time, in the order in which they asked. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#free = Math.max(1, limit);
  }

  /** Resolves with the function that gives the slot back; a second call of it does nothing. */
  async acquire(): Promise<() => void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    };
  }
}

/** Runs the task for every item, at most `limit` at once, in order; resolves when all have ended. Tasks must not reject. */
export async function forEachLimited<Item>(
  items: readonly Item[],
  limit: number,
  task: (item: Item) => Promise<void>,
): Promise<void> {
  const slots = new Semaphore(limit);
  const running: Promise<void>[] = [];
  for (const item of items) {
    const release = await slots.acquire();
    running.push(task(item).finally(release));
  }
  await Promise.all(running);
}
