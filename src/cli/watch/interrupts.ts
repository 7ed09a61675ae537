import type { RunControl } from "#engine/events/event.ts";
import { InterruptSteps } from "#tui/interrupt-steps.ts";

export interface InterruptOptions {
  readonly send: (control: RunControl) => void;
  readonly leave: (why: "left" | "detached") => void;
  /** Names the running work, for the line after the first Ctrl-C. */
  readonly running: () => string;
  readonly say: (text: string) => void;
  /** A terminal where a letter can be typed. */
  readonly canChoose: boolean;
}

/**
 * Ctrl-C (docs/runner.md, Stopping). First: no new step starts, and the operator may wait, abort or detach. Second: the
 * running steps are ended. Third: the view leaves at once. A closed terminal detaches.
 */
export class Interrupts {
  readonly #options: InterruptOptions;
  readonly #steps = new InterruptSteps();
  readonly #onInterrupt = () => this.interrupt();
  readonly #onHangup = () => this.#options.leave("detached");

  constructor(options: InterruptOptions) {
    this.#options = options;
  }

  listen(): void {
    process.on("SIGINT", this.#onInterrupt);
    process.on("SIGTERM", this.#onInterrupt);
    process.on("SIGHUP", this.#onHangup);
  }

  close(): void {
    process.off("SIGINT", this.#onInterrupt);
    process.off("SIGTERM", this.#onInterrupt);
    process.off("SIGHUP", this.#onHangup);
    process.stdin.off("data", this.#onChoice);
    if (this.#steps.begun) process.stdin.pause();
  }

  interrupt(): void {
    const { send, leave, running, say, canChoose } = this.#options;
    const step = this.#steps.next();
    if (step === "stop") {
      send({ type: "stop" });
      say(`\nStopping: no new step starts. ${running()}`);
      say(
        canChoose
          ? "Wait for it (do nothing), or type a + Enter to abort it, d + Enter to detach.\nCtrl-C again aborts it too."
          : "A second signal aborts it.",
      );
      if (canChoose) process.stdin.setEncoding("utf8").on("data", this.#onChoice).resume();
    } else if (step === "abort") this.#abort();
    else leave("left");
  }

  #abort(): void {
    this.#options.send({ type: "abort" });
    this.#options.say("Aborting: the running steps get TERM, after 5 s KILL. Once more, and this view leaves at once.");
  }

  readonly #onChoice = (typed: string | Buffer) => {
    const choice = String(typed).trim().toLowerCase();
    if (choice === "d") this.#options.leave("detached");
    if (choice === "a") {
      this.#steps.skipToAbort();
      this.#abort();
    }
  };
}
