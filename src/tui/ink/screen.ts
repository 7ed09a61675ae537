import { render, useApp, useInput, type Instance, type SuspendTerminal } from "ink";
import { createElement as h, Fragment, type ReactElement } from "react";
import { wait } from "#base/wait.ts";
import { FramePace, realTimers, type Timers } from "./frame-pace.ts";
import { keyPresses, type KeyPress } from "./keys.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface ScreenOptions {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  /** The whole frame: at most `rows` rows of at most `columns` columns. */
  readonly draw: (size: Size) => ReactElement;
  readonly onKey: (press: KeyPress) => void;
  /** Ctrl-C comes as a key; this is a signal from elsewhere, or a terminal that is gone (SIGHUP). */
  readonly onSignal: (signal: "SIGINT" | "SIGTERM" | "SIGHUP") => void;
  /** For times that go on without events; a frame each second. */
  readonly ticks?: boolean;
  readonly timers?: Timers;
}

/** The whole terminal, taken for a view. */
export interface Screen {
  readonly size: Size;
  /** There is news to draw, some time within 100 ms. */
  news(): void;
  /** A key changed something: draw now. */
  key(): void;
  /** Puts a text into the terminal's clipboard (OSC 52), also through ssh; tmux passes it on (set-clipboard). */
  copy(text: string): void;
  /** Draws everything again: somebody else wrote on the terminal. */
  redraw(): void;
  /** Gives the terminal to the shell until it wakes us (Ctrl-Z). */
  suspend(): void;
  /** Gives the terminal back as it was. */
  close(): Promise<void>;
}

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Takes the terminal: alternate screen, raw mode, no cursor. Whatever ends the process (an exception, `process.exit`, a
 * signal that nobody else handles) gives it back first; only SIGKILL cannot. The alternate screen leaves the scrollback
 * alone.
 */
export function openScreen(options: ScreenOptions): Screen {
  const screen = new InkScreen(options);
  screen.open();
  return screen;
}

class InkScreen implements Screen {
  readonly #options: ScreenOptions;
  readonly #pace: FramePace;
  #ink: Instance | undefined;
  #suspendInk: SuspendTerminal | undefined;
  #suspended = false;
  #closed = false;
  #tick: NodeJS.Timeout | undefined;
  readonly #onSignal = (signal: NodeJS.Signals) => this.#options.onSignal(signal as (typeof signals)[number]);
  readonly #onResize = () => this.key();
  readonly #onGone = () => this.#options.onSignal("SIGHUP");
  readonly #onStop = () => this.suspend();
  readonly #onContinue = () => void this.#takeAgain();
  readonly #giveBack = () => this.#unmount();

  constructor(options: ScreenOptions) {
    this.#options = options;
    this.#pace = new FramePace(() => this.#frame(), options.timers ?? realTimers);
  }

  get size(): Size {
    // Undefined, whatever the types say, where a terminal does not tell its size.
    const { columns, rows } = this.#options.stdout as Partial<NodeJS.WriteStream>;
    return { columns: columns || 80, rows: rows || 24 };
  }

  open(): void {
    const { stdin, stdout, ticks = false } = this.#options;
    for (const signal of signals) process.on(signal, this.#onSignal);
    process.on("SIGTSTP", this.#onStop);
    process.on("SIGCONT", this.#onContinue);
    process.on("exit", this.#giveBack);
    process.on("uncaughtExceptionMonitor", this.#giveBack);
    stdout.on("resize", this.#onResize);
    stdout.on("error", this.#onGone);
    stdin.on("end", this.#onGone);
    stdin.on("error", this.#onGone);
    this.#ink = render(this.#element(), {
      stdin,
      stdout,
      exitOnCtrlC: false,
      patchConsole: false,
      alternateScreen: true,
      incrementalRendering: true,
      interactive: true,
      // The pace is ours: ink must never hold a frame back.
      maxFps: 1000,
    });
    if (ticks) this.#tick = setInterval(() => this.news(), 1000);
    this.#tick?.unref();
  }

  news(): void {
    this.#pace.news();
  }

  key(): void {
    this.#pace.key();
  }

  copy(text: string): void {
    if (this.#closed || this.#suspended) return;
    this.#options.stdout.write(`\u001b]52;c;${Buffer.from(text).toString("base64")}\u0007`);
  }

  redraw(): void {
    void this.#takeAgain();
  }

  suspend(): void {
    if (this.#closed || this.#suspended || !this.#suspendInk) return;
    this.#suspended = true;
    void this.#stopUntilContinued(this.#suspendInk);
  }

  async #stopUntilContinued(suspendInk: SuspendTerminal): Promise<void> {
    const suspension = await suspendInk();
    this.#options.stdout.write("\u001b[?25h");
    process.off("SIGTSTP", this.#onStop);
    // The whole job stops, as if the terminal had sent it: a shell script that started us waits with us.
    process.kill(0, "SIGTSTP");
    // We are stopped somewhere in this wait; where nobody does job control we go on after it.
    await wait(100);
    process.on("SIGTSTP", this.#onStop);
    this.#suspended = false;
    await suspension.resume();
    this.key();
  }

  /** Somebody else has had the terminal: after a stop without a word (SIGSTOP), or by writing on it. */
  async #takeAgain(): Promise<void> {
    if (this.#closed || this.#suspended || !this.#suspendInk) return;
    this.#suspended = true;
    try {
      await (await this.#suspendInk()).resume();
    } finally {
      this.#suspended = false;
    }
    this.key();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#pace.close();
    clearInterval(this.#tick);
    const ended = this.#ink?.waitUntilExit();
    this.#unmount();
    await ended?.catch(() => undefined);
    const { stdin, stdout } = this.#options;
    for (const signal of signals) process.off(signal, this.#onSignal);
    process.off("SIGTSTP", this.#onStop);
    process.off("SIGCONT", this.#onContinue);
    process.off("exit", this.#giveBack);
    process.off("uncaughtExceptionMonitor", this.#giveBack);
    stdout.off("resize", this.#onResize);
    stdout.off("error", this.#onGone);
    stdin.off("end", this.#onGone);
    stdin.off("error", this.#onGone);
    stdin.pause();
  }

  #unmount(): void {
    this.#pace.close();
    this.#ink?.unmount();
    this.#ink = undefined;
  }

  #frame(): void {
    if (!this.#closed && !this.#suspended) this.#ink?.rerender(this.#element());
  }

  #element(): ReactElement {
    return h(
      Fragment,
      undefined,
      h(Keyboard, { onKey: this.#options.onKey, onSuspender: (suspend) => (this.#suspendInk = suspend) }),
      this.#options.draw(this.size),
    );
  }
}

/** Listens to the keys; draws nothing. */
function Keyboard({
  onKey,
  onSuspender,
}: {
  readonly onKey: (press: KeyPress) => void;
  readonly onSuspender: (suspend: SuspendTerminal) => void;
}): undefined {
  const { suspendTerminal } = useApp();
  onSuspender(suspendTerminal);
  useInput((input, key) => {
    for (const press of keyPresses(input, key)) onKey(press);
  });
  return undefined;
}
