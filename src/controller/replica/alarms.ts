import type { Alarm, AlarmCode } from "./replica.ts";

/** What an operator should know of, until it is over. */
export class Alarms {
  readonly #alarms = new Map<string, Alarm>();
  readonly #wall: () => number;
  readonly #onRaise: (alarm: Alarm) => void;

  constructor(wall: () => number, onRaise: (alarm: Alarm) => void) {
    this.#wall = wall;
    this.#onRaise = onRaise;
  }

  raise(code: AlarmCode, about: string, message: string): void {
    const id = `${code} ${about}`;
    const known = this.#alarms.get(id);
    const alarm = { code, about, message, since: known?.since ?? this.#wall() };
    this.#alarms.set(id, alarm);
    if (!known) this.#onRaise(alarm);
  }

  clear(code: AlarmCode, about: string): void {
    this.#alarms.delete(`${code} ${about}`);
  }

  set(isOn: boolean, code: AlarmCode, about: string, message: string): void {
    if (isOn) this.raise(code, about, message);
    else this.clear(code, about);
  }

  all(): readonly Alarm[] {
    return [...this.#alarms.values()];
  }
}
