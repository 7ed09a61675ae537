import type { Register } from "#crdt/register.ts";
import { Violation } from "./violation.ts";

type State = "approved" | "rejected";

/** An operator's decision about a node, and the rejects that the operator had seen. */
interface Decision {
  readonly node: string;
  readonly state: State;
  /** The keys of the rejects at the operator's controller at the time of the decision. */
  readonly read: readonly string[];
}

/**
 * (11) A node is rejected exactly while it has a reject that no approve has read. An approve has read the rejects that its controller had at
 * the time. Epochs, stamps and contexts do not matter here.
 */
export class Decisions {
  /** By the decision's `by`, which is unique. */
  readonly #made = new Map<string, Decision>();

  made(by: string, decision: Decision): void {
    this.#made.set(by, decision);
  }

  get count(): number {
    return this.#made.size;
  }

  /**
   * Compares a controller's approvals with the due ones: exactly, unless disks were lost or set back; then no acknowledged reject may be
   * missing. `written`: the transactions that may still count; `acked`: the transactions that must.
   */
  check(
    { written, acked }: { readonly written: Iterable<Register>; readonly acked: Iterable<Register> },
    {
      id,
      approvalOf,
      isExact,
    }: { readonly id: string; readonly approvalOf: (node: string) => string; readonly isExact: boolean },
  ): void {
    const due = new Map<string, State>();
    for (const { node, state } of this.#decisionsIn(written)) if (state === "approved") due.set(node, "approved");
    const rejects = this.#rejectsIn(isExact ? written : acked);
    // An approve that only a lost disk had may have deleted rejects elsewhere already.
    const approves = isExact ? this.#decisionsIn(written) : [...this.#made.values()];
    const overruled = new Set(approves.flatMap(({ state, read }) => (state === "approved" ? read : [])));
    for (const [key, node] of rejects) if (!overruled.has(key)) due.set(node, "rejected");
    for (const [node, state] of due) {
      const found = approvalOf(node);
      if (found !== state && (isExact || state === "rejected"))
        throw new Violation(`(11) ${node} is ${found} at ${id}, and ${state} is due`);
    }
  }

  #decisionsIn(registers: Iterable<Register>): readonly Decision[] {
    return [...registers].flatMap(({ key, text }) => {
      if (text === null || !key.endsWith("/approval")) return [];
      return this.#made.get((JSON.parse(text) as { readonly by: string }).by) ?? [];
    });
  }

  #rejectsIn(registers: Iterable<Register>): readonly (readonly [key: string, node: string])[] {
    return [...registers].flatMap(({ key, text }) => {
      const node = text === null ? undefined : /^node\/([^/]+)\/reject\//.exec(key)?.[1];
      return node === undefined ? [] : [[key, node] as const];
    });
  }
}
