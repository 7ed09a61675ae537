import { render, useApp, useInput, type Instance, type SuspendTerminal, Box, Text } from "ink";
import { createElement as h, Fragment, type ReactElement, memo } from "react";
import { wait } from "#base/wait.ts";
import { realTimers, type Timers } from "#base/timers.ts";
import { FramePace } from "./frame-pace.ts";
import { keyPresses, type KeyPress, type ScreenEffect } from "./keys.ts";
import { type Line, paintLine } from "./text.ts";
import type { Theme } from "./theme.ts";

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface ScreenOptions {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly theme: Theme;
  /** Returns the whole frame: at most `rows` lines, each of which is cut to `columns`. */
  readonly draw: (size: TerminalSize) => readonly Line[];
  readonly onKey: (press: KeyPress) => void;
  /** A signal of another process, or a terminal that is gone (SIGHUP); Ctrl-C comes as a key. */
  readonly onSignal: (signal: "SIGINT" | "SIGTERM" | "SIGHUP") => void;
  readonly timers?: Timers;
}

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * The terminal while a view has it: alternate screen, raw mode, no cursor. An exception, `process.exit` or an unhandled signal
 * gives the terminal back first; SIGKILL and a crash of Node.js cannot. The alternate screen leaves the scrollback alone.
 */
export class Screen {
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
  readonly #onStop = () => this.#suspend();
  readonly #onContinue = () => void this.#takeAgain();
  readonly #giveBack = () => this.#unmount();

  constructor(options: ScreenOptions) {
    this.#options = options;
    this.#pace = new FramePace(() => this.#frame(), options.timers ?? realTimers);
    this.#open();
  }

  get size(): TerminalSize {
    // A terminal may report no size, although the types exclude that.
    const { columns, rows } = this.#options.stdout as Partial<NodeJS.WriteStream>;
    return { columns: columns || 80, rows: rows || 24 };
  }

  #open(): void {
    const { stdin, stdout } = this.#options;
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
      // FramePace sets the pace: ink must never hold a frame back.
      maxFps: 1000,
    });
    // Durations grow without events.
    this.#tick = setInterval(() => this.news(), 1000).unref();
  }

  /** Draws within 100 ms, on a slow machine within a second. */
  news(): void {
    this.#pace.news();
  }

  /** Draws within 33 ms, after a key or a change of the terminal. */
  key(): void {
    this.#pace.key();
  }

  do(effect: ScreenEffect): void {
    switch (effect.type) {
      case "suspend":
        return this.#suspend();
      case "redraw":
        return void this.#takeAgain();
      case "copy":
        return this.#copy(effect.text);
    }
  }

  /** Puts a text into the terminal's clipboard (OSC 52), also through ssh; tmux passes it on (set-clipboard). */
  #copy(text: string): void {
    if (this.#closed || this.#suspended) return;
    this.#options.stdout.write(`\u001b]52;c;${Buffer.from(text).toString("base64")}\u0007`);
  }

  /** Gives the terminal to the shell until the operator continues the job (Ctrl-Z, fg). */
  #suspend(): void {
    if (this.#closed || this.#suspended || !this.#suspendInk) return;
    this.#suspended = true;
    void this.#stopUntilContinued(this.#suspendInk);
  }

  async #stopUntilContinued(suspendInk: SuspendTerminal): Promise<void> {
    const suspension = await suspendInk();
    this.#options.stdout.write("\u001b[?25h");
    process.off("SIGTSTP", this.#onStop);
    // The whole job stops, as if the terminal had sent the signal: a shell script that started kcore stops, too.
    process.kill(0, "SIGTSTP");
    // The stop takes effect within this wait; without job control the process continues after it.
    await wait(100);
    process.on("SIGTSTP", this.#onStop);
    this.#suspended = false;
    await suspension.resume();
    this.key();
  }

  /** Draws everything again, because another program has used the terminal: after SIGSTOP, or by writing on it. */
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

  /** Gives the terminal back as it was. May be called twice. */
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
      h(Lines, { lines: this.#options.draw(this.size), width: this.size.columns, theme: this.#options.theme }),
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

/** One row, drawn again only when its text changes; an empty text would have no height. */
const Row = memo(function Row({ text }: { readonly text: string }): ReactElement {
  return h(Text, { wrap: "truncate" }, text === "" ? " " : text);
});

/** A frame: rows of the terminal, one below the other. */
export function Lines({
  lines,
  width,
  theme,
}: {
  readonly lines: readonly Line[];
  readonly width: number;
  readonly theme: Theme;
}): ReactElement {
  return h(
    Box,
    { flexDirection: "column", width, height: lines.length, flexShrink: 0 },
    ...lines.map((line, index) => h(Row, { key: index, text: paintLine(line, width, theme) })),
  );
}
