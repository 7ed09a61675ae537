import { countdown } from "#base/wait.ts";
import type { SessionEvent, Timer } from "./session-events.ts";

/** The event of each timer, sent when the timer is due. */
export const timerEvents: Readonly<Record<Timer, SessionEvent>> = {
  retry: { to: "connection", event: { type: "retry-due" } },
  goodbye: { to: "runner", event: { type: "goodbye-timeout" } },
  abort: { to: "runner", event: { type: "abort-timeout" } },
  lock: { to: "queue", event: { type: "lock-retry-due" } },
  reboot: { to: "queue", event: { type: "reboot-timeout" } },
};

/** The timers of a session, one of each name. */
export class SessionTimers {
  readonly #send: (event: SessionEvent) => void;
  readonly #running = new Map<Timer, () => void>();

  constructor(send: (event: SessionEvent) => void) {
    this.#send = send;
  }

  start(timer: Timer, milliseconds: number): void {
    this.clear(timer);
    const send = (): void => this.#send(timerEvents[timer]);
    this.#running.set(timer, countdown(milliseconds, send));
  }

  clear(timer: Timer): void {
    this.#running.get(timer)?.();
  }
}
