import type { Register } from "./register.ts";

/**
 * The registers of one origin by seq: the index that a delta is cut from. It is no log of operations: superseded registers are
 * removed once they are half of the list.
 */
export class OriginLog {
  #list: Register[] = [];
  #dead = 0;

  /** Adds a register. Registers usually arrive in the order of seq; a repair brings earlier ones. */
  add(register: Register): void {
    const last = this.#list.at(-1);
    if (last === undefined || last.s <= register.s) this.#list.push(register);
    else this.#list.splice(this.#firstAbove(register.s), 0, register);
  }

  /** Counts a superseded register; after many of them drops all registers that are not live. */
  retire(isLive: (register: Register) => boolean): void {
    this.#dead++;
    if (this.#dead < 64 || this.#dead * 2 < this.#list.length) return;
    this.#list = this.#list.filter(isLive);
    this.#dead = 0;
  }

  /** Registers with `from` < seq ≤ `to`, in order. Superseded ones may be among them. */
  *between(from: number, to: number): Iterable<Register> {
    for (let index = this.#firstAbove(from); index < this.#list.length; index++) {
      const register = this.#list[index];
      if (register === undefined || register.s > to) return;
      yield register;
    }
  }

  #firstAbove(seq: number): number {
    let low = 0;
    let high = this.#list.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#list[middle]?.s ?? 0) > seq) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
