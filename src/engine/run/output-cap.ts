import type { RunEventBody } from "#engine/events/event.ts";

/** Bytes of a run's record from which on output is left out. */
const LIMIT = 256 * 1024 * 1024;

/**
 * Keeps a record from filling the bastion's disk with what steps print: once it is so large, output is left out and a
 * warning says so, once. Every other event goes on: what happened is always told.
 */
export class OutputCap {
  readonly #limit: number;
  #told = false;

  constructor(limit = LIMIT) {
    this.#limit = limit;
  }

  /** What of an event is recorded while the record has `size` bytes. */
  pass(event: RunEventBody, size: number): RunEventBody | undefined {
    if (event.type !== "step.output" || size < this.#limit) return event;
    if (this.#told) return undefined;
    this.#told = true;
    const text = `the run's record has ${Math.round(size / 1024 / 1024)} MiB: what steps print is not recorded from now on`;
    return { type: "warning", text };
  }
}
