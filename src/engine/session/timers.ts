import type { Message, Timer } from "./session-events.ts";

/** What the machines are told when a timer is due. */
const due: Readonly<Record<Timer, Message>> = {
  retry: { to: "connection", event: { type: "waited" } },
  goodbye: { to: "runner", event: { type: "unanswered" } },
  abort: { to: "runner", event: { type: "abort-late" } },
  lock: { to: "queue", event: { type: "lock-waited" } },
  reboot: { to: "queue", event: { type: "reboot-late" } },
};

/** The timers of a session, one of each name. */
export class Timers {
  readonly #tell: (message: Message) => void;
  readonly #running = new Map<Timer, NodeJS.Timeout>();

  constructor(tell: (message: Message) => void) {
    this.#tell = tell;
  }

  wait(timer: Timer, milliseconds: number): void {
    this.forget(timer);
    this.#running.set(
      timer,
      setTimeout(() => this.#tell(due[timer]), milliseconds),
    );
  }

  forget(timer: Timer): void {
    clearTimeout(this.#running.get(timer));
  }
}
