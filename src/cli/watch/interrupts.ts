import type { RunControl } from "#engine/events/event.ts";
import { InterruptSteps } from "#tui/interrupt-steps.ts";

export interface InterruptOptions {
  readonly send: (control: RunControl) => void;
  readonly leave: (why: "left" | "detached") => void;
  /** Names the running work, for the line after the first Ctrl-C. */
  readonly running: () => string;
  readonly say: (text: string) => void;
  /** Whether the operator can type a letter. */
  readonly canChoose: boolean;
}

/**
 * Acts on Ctrl-C (docs/runner.md, Stopping). First: no new step starts, and the operator may wait, abort or detach. Second: the
 * running steps are ended. Third: the view leaves at once. A closed terminal detaches. `interrupt` counts as a Ctrl-C.
 */
export function listenToInterrupts({ send, leave, running, say, canChoose }: InterruptOptions): {
  readonly interrupt: () => void;
  readonly close: () => void;
} {
  const steps = new InterruptSteps();
  const abort = (): void => {
    send({ type: "abort" });
    say("Aborting: the running steps get TERM, after 5 s KILL. Once more, and this view leaves at once.");
  };
  const onChoice = (typed: string | Buffer): void => {
    const choice = String(typed).trim().toLowerCase();
    if (choice === "d") leave("detached");
    if (choice === "a") {
      steps.skipToAbort();
      abort();
    }
  };
  const interrupt = (): void => {
    const step = steps.next();
    if (step === "abort") return abort();
    if (step === "leave") return leave("left");
    send({ type: "stop" });
    say(`\nStopping: no new step starts. ${running()}`);
    say(
      canChoose
        ? "Wait for it (do nothing), or type a + Enter to abort it, d + Enter to detach.\nCtrl-C again aborts it too."
        : "A second signal aborts it.",
    );
    if (canChoose) process.stdin.setEncoding("utf8").on("data", onChoice).resume();
  };
  const listeners = { SIGINT: interrupt, SIGTERM: interrupt, SIGHUP: () => leave("detached") };
  for (const [signal, listener] of Object.entries(listeners)) process.on(signal, listener);
  return {
    interrupt,
    close: () => {
      for (const [signal, listener] of Object.entries(listeners)) process.off(signal, listener);
      process.stdin.off("data", onChoice);
      if (steps.begun) process.stdin.pause();
    },
  };
}
