/** An opened resource; `idle` runs while it has no users. */
interface Shared<Value> {
  readonly value: Promise<Value>;
  users: number;
  idle?: NodeJS.Timeout;
}

/** Resources that several pages use, by name. A resource is opened for its first user, and closed some time after its last user is done. */
export class SharedResources<Value extends { close(): void }> {
  readonly #open: (name: string) => Promise<Value>;
  readonly #linger: number;
  readonly #shared = new Map<string, Shared<Value>>();

  /** `linger`: milliseconds until an unused resource is closed. */
  constructor(open: (name: string) => Promise<Value>, linger: number) {
    this.#open = open;
    this.#linger = linger;
  }

  /** Uses a resource until `done` is called. @throws as `open` does */
  async use(name: string): Promise<{ readonly value: Value; readonly done: () => void }> {
    let shared = this.#shared.get(name);
    if (!shared) {
      shared = { value: this.#open(name), users: 0 };
      this.#shared.set(name, shared);
      shared.value.catch(() => this.#shared.delete(name));
    }
    clearTimeout(shared.idle);
    shared.users += 1;
    const entry = shared;
    const value = await entry.value;
    let isDone = false;
    const done = (): void => {
      if (isDone) return;
      isDone = true;
      entry.users -= 1;
      if (entry.users === 0) entry.idle = setTimeout(() => this.#close(name, value), this.#linger).unref();
    };
    return { value, done };
  }

  closeAll(): void {
    for (const [name, { value, idle }] of this.#shared) {
      clearTimeout(idle);
      value.then(
        (one) => this.#close(name, one),
        () => undefined,
      );
    }
  }

  #close(name: string, value: Value): void {
    this.#shared.delete(name);
    value.close();
  }
}
