import type { RunEventBody } from "#engine/events/event.ts";

/** While a new connection is to confirm a change (a trial), lets each reason against the connection pass once, not for each attempt. */
export class ConnectReasons {
  /** Why the last connection of the trial failed. */
  #last: string | undefined;
  readonly #onLater: (reason: string) => void;

  /** `onLater`: gets each new reason after the first. */
  constructor(onLater: (reason: string) => void) {
    this.#onLater = onLater;
  }

  isNew(event: RunEventBody, isTrial: boolean): boolean {
    if (!isTrial) this.#last = undefined;
    else if (event.type === "node.connecting" && this.#last !== undefined && event.attempt > 2) return false;
    else if (event.type === "node.disconnected") {
      if (event.reason === this.#last) return false;
      if (this.#last !== undefined) this.#onLater(event.reason);
      this.#last = event.reason;
    }
    return true;
  }
}
