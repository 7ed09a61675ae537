import { formatBinary } from "#base/units.ts";
import type { RunEventBody } from "#engine/events/event.ts";

/** Bytes of a run's record from which on all output is left out. */
const RECORD_LIMIT = 256 * 1024 * 1024;
/** Characters of output that are recorded of one node. */
const NODE_LIMIT = 64 * 1024 * 1024;

/**
 * Limits the output of steps in a record, so that it cannot fill the bastion's disk, nor one node use up the others' part. Beyond a limit,
 * output is left out, with one warning for the record and one for each node. All other events pass: a node's session bounds them
 * (node-budget.ts).
 */
export class OutputCap {
  readonly #limit: number;
  readonly #limitOfNode: number;
  readonly #printed = new Map<string, number>();
  #hasWarned = false;

  constructor(limit = RECORD_LIMIT, limitOfNode = NODE_LIMIT) {
    this.#limit = limit;
    this.#limitOfNode = limitOfNode;
  }

  /** The event to record while the record has `size` bytes: a warning in its place where a limit is reached, undefined beyond the limit. */
  pass(event: RunEventBody, size: number): RunEventBody | undefined {
    if (event.type !== "step.output" && event.type !== "action.output") return event;
    if (size >= this.#limit) {
      if (this.#hasWarned) return undefined;
      this.#hasWarned = true;
      const text = `the run's record has ${formatBinary(size)}: output of steps is not recorded from now on`;
      return { type: "warning", text, cutsOutput: true };
    }
    const node = event.type === "step.output" ? event.node : (event.item ?? "");
    const before = this.#printed.get(node) ?? 0;
    if (before > this.#limitOfNode) return undefined;
    const after = before + event.text.length + ("bytes" in event ? (event.bytes?.length ?? 0) : 0);
    this.#printed.set(node, after);
    if (after <= this.#limitOfNode) return event;
    const text = `${node || "the bastion"} printed ${formatBinary(this.#limitOfNode)}: output of its steps is not recorded from now on`;
    return { type: "warning", ...(node !== "" && { node }), text, cutsOutput: true };
  }
}
