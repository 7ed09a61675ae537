import { createElement as h } from "react";
import type { RunControl, RunEvent } from "#engine/events/event.ts";
import { emptyRun, type RunModel } from "#engine/events/run-model.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { defined } from "#optional/defined.ts";
import type { RunDrawing } from "../drawing.ts";
import { calling, knowsTitles } from "../attention.ts";
import { InterruptSteps } from "../interrupt-steps.ts";
import type { PlayerControls } from "../player.ts";
import type { Pace } from "../time-left.ts";
import type { Foretold } from "../what-follows.ts";
import { arrange } from "./arrange-run.ts";
import type { Timers } from "./frame-pace.ts";
import type { KeyPress } from "./keys.ts";
import { isSamePlace, isSameStep, OutputPager, type OutputPlace, type ReadRecord } from "./output-pager.ts";
import type { Deed } from "./pressed.ts";
import { pressKey } from "./run-keys.ts";
import { RunScreen } from "./run-screen.ts";
import { freshUi, type RunUi } from "./run-ui.ts";
import type { Scene } from "./scene.ts";
import { openScreen, type Screen, type Size } from "./screen.ts";
import type { Theme } from "./theme.ts";

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
  /** How earlier runs of the same came forward, as far as that is known: for “about 40 s left”. */
  readonly paces?: readonly Pace[];
  /** What a dry run of the same said, as soon as that is known: told where a confirmation is asked. */
  readonly foretold?: () => Foretold | undefined;
  /** Answers, stop and abort. Never called with a player. */
  readonly send: (control: RunControl) => void;
  /**
   * The user leaves and the run goes on: `detached` by q, by d after a Ctrl-C or by a hangup, `left` by the third
   * Ctrl-C. Called once; the terminal is still the view's until `close`.
   */
  readonly leave: (why: "left" | "detached") => void;
  /** What `c` does; else the text goes to the terminal's clipboard (OSC 52). */
  readonly copy?: (text: string) => void;
  /** The run's record, for what steps printed; without it the last lines are shown. */
  readonly read?: ReadRecord;
  /** A replay; nothing is sent then. */
  readonly player?: PlayerControls;
  /** The run as it is known before its first event. */
  readonly before?: RunModel;
  /** Somebody is known to be at the keys. */
  readonly isUsed?: boolean;
  /** The clock that frames are paced by, for tests. */
  readonly timers?: Timers;
}

/** The live view of a run, over the whole terminal. */
export interface RunView extends RunDrawing {
  /** Takes an event in; it is on the screen within 100 ms, where frames are dear within ten times what one takes (at most a second). Never waits, never throws. */
  draw(event: RunEvent): void;
  /** Shows another state of the run, after a seek. */
  replace(model: RunModel): void;
  /**
   * After the last event: resolves when nobody looks any more, and with what is wanted then. At once where there is nothing to look
   * at (all went well, and no key was used), and where somebody here had stopped it.
   */
  rest(): Promise<AfterRun>;
  /** Gives the terminal back as it was, with nothing of the view on it. May be called twice. */
  close(): Promise<void>;
}

/** What somebody wants who has seen how a run ended. */
export type AfterRun = "leave" | "resume";

/**
 * Takes the terminal (alternate screen, raw mode, no cursor) and shows the run until `close`. While it is open it
 * handles SIGINT, SIGTERM, SIGHUP, SIGTSTP and SIGCONT by itself: the caller must not (`Interrupts` is for the plain
 * view). SIGTERM and SIGHUP leave, the run goes on. It answers questions by `send`. `run.finished` does not close it: the caller does, when the events end.
 */
export function openRunView(options: RunViewOptions): Promise<RunView> {
  return Promise.resolve(new InkRunView(options).open());
}

/** Nobody has read a question so soon. */
const hastyMs = 500;

class InkRunView implements RunView {
  readonly #options: RunViewOptions;
  readonly #interrupts = new InterruptSteps();
  readonly #call: (open: number) => void;
  #screen: Screen | undefined;
  #model: RunModel;
  #pending: RunEvent[] = [];
  #ui: RunUi = freshUi;
  #asked = 0;
  /** When the newest question came. */
  #askedAt = 0;
  #scene: Scene;
  #hasLeft = false;
  /** Somebody is at the keys. */
  #isUsed: boolean;
  /** Somebody here wants it to end. */
  #isStopped = false;
  readonly #rested = Promise.withResolvers<AfterRun>();
  #pager: OutputPager | undefined;
  /** The last one of the same step that had read all: what was in sight stays until the next one has. */
  #paged: OutputPager | undefined;
  #unsubscribe: (() => void) | undefined;

  constructor(options: RunViewOptions) {
    this.#options = options;
    this.#call = calling((text) => options.stdout.write(text), knowsTitles(process.env));
    this.#model = options.before ?? emptyRun;
    this.#isUsed = options.isUsed ?? false;
    this.#scene = this.#arrange({ columns: 80, rows: 24 });
  }

  open(): this {
    const { stdin, stdout, theme, player, timers } = this.#options;
    this.#screen = openScreen({
      stdin,
      stdout,
      ticks: true,
      ...defined({ timers }),
      onKey: (press) => this.#press(press),
      onSignal: (signal) => this.#signal(signal),
      draw: (size) => {
        this.#take();
        this.#scene = this.#arrange(size);
        this.#ui = this.#scene.ui;
        return h(RunScreen, { scene: this.#scene, size, theme });
      },
    });
    this.#unsubscribe = player?.subscribe(() => this.#screen?.news());
    return this;
  }

  draw(event: RunEvent): void {
    this.#pending.push(event);
    this.#screen?.news();
  }

  replace(model: RunModel): void {
    this.#pending = [];
    this.#model = model;
    this.#screen?.news();
  }

  rest(): Promise<AfterRun> {
    const { outcome, dryRun } = this.#take();
    const isUnseen = outcome === "done" && !this.#isUsed && !dryRun;
    if (this.#hasLeft || this.#isStopped || isUnseen) return Promise.resolve("leave");
    // What a dry run was for comes first.
    const shown = dryRun && outcome === "done" ? { overlay: "foresight" as const, overlayTop: 0 } : {};
    this.#ui = { ...this.#ui, resting: true, stopping: false, ...shown };
    this.#screen?.news();
    return this.#rested.promise;
  }

  async close(): Promise<void> {
    this.#unsubscribe?.();
    this.#call(0);
    await this.#screen?.close();
  }

  /** The run with all that was heard of it. */
  #take(): RunModel {
    if (this.#pending.length > 0) this.#model = reduceEvents(this.#pending, this.#model);
    this.#pending = [];
    return this.#model;
  }

  #arrange(size: Size): Scene {
    const { theme, project, usual, paces, foretold, player, now = Date.now } = this.#options;
    const model = this.#model;
    // A question that was not there before comes to the front, also when an earlier one was put aside.
    if (model.questions.length > this.#asked) {
      this.#ui = { ...this.#ui, aside: false };
      this.#askedAt = now();
    }
    this.#asked = model.questions.length;
    if (!this.#options.player) this.#call(model.state === "finished" ? 0 : this.#asked);
    const replay = player?.state();
    const scene = arrange({
      model,
      ui: this.#ui,
      size,
      theme,
      now: replay?.at ?? (model.state === "finished" ? model.lastAt : now()),
      real: now(),
      project,
      ...defined({ usual, paces, foretold, player: replay, output: this.#paged }),
      isReading: this.#pager !== this.#paged,
    });
    this.#page(scene.page.output, model.lastSeq);
    return scene;
  }

  /** Reads all that the step in sight printed, and of no other. */
  #page(place: OutputPlace | undefined, seq: number): void {
    const { read } = this.#options;
    if (!place || !read) this.#pager = undefined;
    else if (!this.#pager || !isSamePlace(this.#pager, place)) {
      const pager: OutputPager = new OutputPager(place, read, () => {
        if (this.#pager !== pager) return;
        if (pager.isComplete) this.#paged = pager;
        this.#screen?.news();
      });
      this.#pager = pager;
    }
    if (!this.#pager || (this.#paged && !isSameStep(this.#paged, this.#pager))) this.#paged = undefined;
    this.#pager?.follow(seq);
  }

  #press(press: KeyPress): void {
    this.#isUsed ||= !press.name.startsWith("ctrl+");
    // A key means what was seen: events since the last frame wait for the next one. Of several keys between two frames
    // each finds what the one before it made.
    if (this.#scene.ui !== this.#ui) this.#scene = this.#arrange(this.#screen?.size ?? { columns: 80, rows: 24 });
    // A key that was meant for the list must not decide what was asked that very moment.
    const { now = Date.now } = this.#options;
    const isHasty = this.#scene.question?.kind === "confirm" && now() - this.#askedAt < hastyMs;
    if (isHasty && /^[yn]$/i.test(press.name)) return;
    const { ui, does } = pressKey(this.#scene, press);
    this.#ui = ui;
    if (does) this.#do(does);
    this.#screen?.key();
  }

  #signal(signal: "SIGINT" | "SIGTERM" | "SIGHUP"): void {
    if (signal === "SIGINT") this.#do({ type: "interrupt" });
    else this.#leave("detached");
    this.#screen?.key();
  }

  #do(deed: Deed): void {
    const { send, player, copy } = this.#options;
    switch (deed.type) {
      case "interrupt":
        return this.#interrupt();
      case "abort":
        this.#interrupts.skipToAbort();
        return send({ type: "abort" });
      case "leave":
        return this.#leave(deed.why);
      case "resume":
        return this.#rested.resolve("resume");
      case "answer":
        return send({ type: "answer", id: deed.id, value: deed.value });
      case "copy":
        if (copy) copy(deed.text);
        else this.#screen?.copy(deed.text);
        return this.#say(`copied: ${deed.text}`, "ok");
      case "say":
        return this.#say(deed.text, "warning");
      case "suspend":
        return this.#screen?.suspend();
      case "redraw":
        return this.#screen?.redraw();
      case "toggle":
        return player?.toggle();
      case "seek":
        return player?.seek(deed.by);
      case "step":
        return player?.step(deed.direction);
      case "speed": {
        const speed = (player?.state().speed ?? 1) * deed.factor;
        return player?.setSpeed(Math.max(0.25, Math.min(64, speed)));
      }
    }
  }

  #interrupt(): void {
    const { send, player } = this.#options;
    // Nothing is left to stop.
    if (player || this.#model.state === "finished") return this.#leave("detached");
    this.#isStopped = true;
    switch (this.#interrupts.next()) {
      case "stop":
        this.#ui = { ...this.#ui, stopping: true };
        return send({ type: "stop" });
      case "abort":
        this.#ui = { ...this.#ui, stopping: true };
        return send({ type: "abort" });
      case "leave":
        return this.#leave("left");
    }
  }

  #leave(why: "left" | "detached"): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#rested.resolve("leave");
    this.#options.leave(why);
  }

  #say(text: string, role: "ok" | "warning"): void {
    const { now = Date.now } = this.#options;
    this.#ui = { ...this.#ui, toast: { text, role, until: now() + 4000 } };
  }
}
