// “Neighbouring versions” (docs/replication.md): registers that this version cannot read are kept and passed on, and not shown.
import { maxKeyBytes, maxValueBytes, type Register } from "#crdt/register.ts";
import type { KeyRules } from "./replica-ports.ts";
import { inBackground } from "./commit-queue.ts";
import type { Core } from "./replica-core.ts";

/**
 * Registers that this version cannot read: they are kept and passed on, but not shown. Each register is checked when it changes; those
 * from the disk are checked in slices after the start, and until then at each read.
 */
export class Quarantine {
  readonly #core: Core;
  readonly #unreadable = new Set<string>();
  #isChecked = false;

  constructor(core: Core) {
    this.#core = core;
    inBackground(this.#checkAll());
    core.commits.watch((keys) => {
      for (const key of keys) this.#check(key);
      this.#raiseAlarm();
    });
  }

  async #checkAll(): Promise<void> {
    const { state, tuning } = this.#core;
    let checked = 0;
    for (const { key } of state.map.all()) {
      this.#check(key);
      if (++checked % tuning.slice > 0) continue;
      this.#raiseAlarm();
      await this.#core.nextTurn();
    }
    this.#isChecked = true;
    this.#raiseAlarm();
  }

  get keys(): Iterable<string> {
    return this.#unreadable;
  }

  /** Keys below a prefix whose live registers this version cannot read. */
  below(prefix: string): readonly string[] {
    const registers = this.#core.state.map.withPrefix(prefix);
    return Array.from(registers).flatMap((each) => (each.text === null || this.isShown(each) ? [] : [each.key]));
  }

  isShown(register: Register): boolean {
    if (register.text === null || this.#unreadable.has(register.key)) return false;
    return this.#isChecked || isReadable(this.#core.state.rules, register);
  }

  #check(key: string): void {
    const { map, rules } = this.#core.state;
    const register = map.get(key);
    if (register && register.text !== null && !isReadable(rules, register)) this.#unreadable.add(key);
    else this.#unreadable.delete(key);
  }

  #raiseAlarm(): void {
    const { size } = this.#unreadable;
    this.#core.alarms.set(size > 0, "QUARANTINED", "state", `${size} registers cannot be read by this version`);
  }
}

function isReadable({ isKnown }: Required<KeyRules>, { key, text }: Register): boolean {
  if (text === null) return true;
  if (key.length > maxKeyBytes || text.length > maxValueBytes) return false;
  return isKnown(key, text);
}
