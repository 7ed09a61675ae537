/** Something that costs while it is kept, and is made anew when it is wanted again. */
interface Kept<Value> {
  readonly value: Promise<Value>;
  users: number;
  idle?: NodeJS.Timeout;
}

/** Keeps what several pages use, by name, and lets it go some time after the last of them left. */
export class Keeper<Value extends { close(): void }> {
  readonly #open: (name: string) => Promise<Value>;
  readonly #linger: number;
  readonly #kept = new Map<string, Kept<Value>>();

  /** `linger`: milliseconds until what nobody uses is closed. */
  constructor(open: (name: string) => Promise<Value>, linger: number) {
    this.#open = open;
    this.#linger = linger;
  }

  /** Uses it until the function that comes with it is called. @throws what opening it throws */
  async use(name: string): Promise<{ readonly value: Value; readonly done: () => void }> {
    let kept = this.#kept.get(name);
    if (!kept) {
      kept = { value: this.#open(name), users: 0 };
      this.#kept.set(name, kept);
      kept.value.catch(() => this.#kept.delete(name));
    }
    clearTimeout(kept.idle);
    kept.users += 1;
    const mine = kept;
    const value = await mine.value;
    let isDone = false;
    const done = (): void => {
      if (isDone) return;
      isDone = true;
      mine.users -= 1;
      if (mine.users === 0) mine.idle = setTimeout(() => this.#forget(name, value), this.#linger).unref();
    };
    return { value, done };
  }

  closeAll(): void {
    for (const [name, { value, idle }] of this.#kept) {
      clearTimeout(idle);
      this.#kept.delete(name);
      value.then(
        (one) => one.close(),
        () => undefined,
      );
    }
  }

  #forget(name: string, value: Value): void {
    this.#kept.delete(name);
    value.close();
  }
}
