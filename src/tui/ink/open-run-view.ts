import type { RunControl, RunEvent } from "#engine/events/event.ts";
import { emptyRun, type RunModel } from "#engine/events/model.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import type { RunDrawing } from "../drawing.ts";
import type { Theme } from "./theme.ts";

/** A recorded run's player: what the keys of a replay do. */
export interface PlayerControls {
  /** `at`, `from`, `to`: milliseconds since the epoch on the recording's clock; that is also the view's clock then. */
  state(): {
    readonly playing: boolean;
    readonly speed: number;
    readonly at: number;
    readonly from: number;
    readonly to: number;
  };
  /** Plays or pauses. */
  toggle(): void;
  seek(deltaMs: number): void;
  /** Pauses and goes to the end of the next (+1) or the previous (-1) step of any node. */
  step(direction: 1 | -1): void;
  setSpeed(speed: number): void;
  /** Calls the listener whenever the state changes; gives what ends that. */
  subscribe(listener: () => void): () => void;
}

export interface RunViewOptions {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  /** From `detectTheme(process.env, process.stdout)` of ./theme.ts. */
  readonly theme: Theme;
  /** The project's folder, for the header. */
  readonly project: string;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Milliseconds that earlier runs of the same step took (p90), by `${module} ${title}`: for the marker “slow”. */
  readonly usual?: ReadonlyMap<string, number>;
  /** Events up to this number are known already (a resumed run): they are taken in, but nothing rings for them. */
  readonly since?: number;
  /** Answers, stop and abort. Never called with a player. */
  readonly send: (control: RunControl) => void;
  /**
   * The user leaves and the run goes on: `detached` by q, by d after a Ctrl-C or by a hangup, `left` by the third
   * Ctrl-C. Called once; the terminal is still the view's until `close`.
   */
  readonly leave: (why: "left" | "detached") => void;
  /** What `c` does; else the text goes to the terminal's clipboard (OSC 52). */
  readonly copy?: (text: string) => void;
  /** A replay; nothing is sent then. */
  readonly player?: PlayerControls;
}

/** The live view of a run, over the whole terminal. */
export interface RunView extends RunDrawing {
  /** Takes an event in; it is on the screen within 100 ms. Never waits, never throws. */
  draw(event: RunEvent): void;
  /** Shows another state of the run, after a seek. */
  replace(model: RunModel): void;
  /** Gives the terminal back as it was, with nothing of the view on it. May be called twice. */
  close(): Promise<void>;
}

/**
 * Takes the terminal (alternate screen, raw mode, no cursor) and shows the run until `close`. While it is open it
 * handles SIGINT, SIGTERM, SIGHUP, SIGTSTP and SIGCONT by itself: the caller must not (`Interrupts` is for the plain
 * view). It answers questions by `send`. `run.finished` does not close it: the caller does, when the events end.
 */
export function openRunView(options: RunViewOptions): Promise<RunView> {
  let model = emptyRun;
  let pending: RunEvent[] = [];
  const frame = () => {
    model = reduceEvents(pending, model);
    pending = [];
    options.stdout.write(`${options.theme.paint("title", model.title)} ${model.state}\n`);
  };
  return Promise.resolve({
    draw: (event) => {
      pending.push(event);
      if (event.type === "run.started" || event.type === "run.finished") frame();
    },
    replace: (other) => {
      model = other;
      frame();
    },
    close: () => Promise.resolve(),
  });
}
