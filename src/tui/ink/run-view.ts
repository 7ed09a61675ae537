import type { RunControl, RunEvent } from "#engine/events/event.ts";
import { emptyRun, type RunModel } from "#engine/events/run-model.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { RunDrawing } from "../plain.ts";
import { operatorCaller, knowsTitles, type DryRunResult } from "../questions.ts";
import { InterruptSteps } from "../interrupt-steps.ts";
import type { PlayerControls } from "../player.ts";
import type { RunPace } from "../time-left.ts";
import { arrange } from "./arrange-run.ts";
import type { Timers } from "#base/timers.ts";
import type { KeyPress } from "./keys.ts";
import { isSamePlace, isSameStep, OutputPager, type OutputPlace, type ReadRecord } from "./output-pager.ts";
import { pressKey } from "./run-keys.ts";
import { freshUi, type RunEffect, type RunUi } from "./run-ui.ts";
import type { Scene } from "./scene.ts";
import { Screen, type TerminalSize } from "./screen.ts";
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
  /** The paces of earlier runs of the same kind, for “about 40 s left”. */
  readonly paces?: readonly RunPace[];
  /** The last dry run of the same kind, for confirmations; undefined while it is not known. */
  readonly lastDryRun?: () => DryRunResult | undefined;
  /** Sends answers, stop and abort to the run. Never called in a replay. */
  readonly send: (control: RunControl) => void;
  /**
   * The operator leaves: `left` by the third Ctrl-C, `detached` by a key (q, d), SIGTERM or SIGHUP, or by Ctrl-C in a replay or
   * after the run's end. Called once; a living run goes on, and the view keeps the terminal until `close`.
   */
  readonly leave: (why: "left" | "detached") => void;
  /** Reads the run's record for the whole output of steps; without it the view shows the last lines. */
  readonly read?: ReadRecord;
  /** The player of a replay; then nothing is sent. */
  readonly player?: PlayerControls;
  /** The state of the run before its first event. */
  readonly before?: RunModel;
  /** The operator has used a key before this view opened. */
  readonly isUsed?: boolean;
  /** The clock that paces frames, for tests. */
  readonly timers?: Timers;
}

/** The choice of an operator who has seen the end of a run. */
export type AfterRun = "leave" | "resume";

/** Milliseconds after a question appears in which an operator cannot have read it. */
const hastyMs = 500;

/**
 * The live view of a run, over the whole terminal until `close`. The view handles SIGINT, SIGTERM, SIGHUP, SIGTSTP and SIGCONT;
 * SIGTERM and SIGHUP leave, and the run goes on. `run.finished` does not close the view.
 */
export class RunView implements RunDrawing {
  readonly #options: RunViewOptions;
  readonly #interrupts = new InterruptSteps();
  readonly #call: (open: number) => void;
  #screen: Screen | undefined;
  #model: RunModel;
  #pending: RunEvent[] = [];
  #ui: RunUi = freshUi;
  /** The number of open questions in the last frame. */
  #openQuestions = 0;
  /** Milliseconds since the epoch: the newest question appeared. */
  #newestQuestionAt = 0;
  #scene: Scene;
  #hasLeft = false;
  /** The operator has used a key. */
  #isUsed: boolean;
  /** The operator stopped the run in this view. */
  #isStopped = false;
  readonly #rested = Promise.withResolvers<AfterRun>();
  #pager: OutputPager | undefined;
  /** The last complete pager of the same step: its rows stay visible until the next pager is complete. */
  #paged: OutputPager | undefined;
  #unsubscribe: (() => void) | undefined;

  constructor(options: RunViewOptions) {
    this.#options = options;
    this.#call = operatorCaller((text) => options.stdout.write(text), knowsTitles(process.env));
    this.#model = options.before ?? emptyRun;
    this.#isUsed = options.isUsed ?? false;
    this.#scene = this.#arrange({ columns: 80, rows: 24 });
    this.#open();
  }

  #open(): void {
    const { stdin, stdout, theme, player, timers } = this.#options;
    this.#screen = new Screen({
      stdin,
      stdout,
      theme,
      ...omitUndefined({ timers }),
      onKey: (press) => this.#press(press),
      onSignal: (signal) => this.#signal(signal),
      draw: (size) => {
        this.#currentModel();
        this.#scene = this.#arrange(size);
        this.#ui = this.#scene.ui;
        return this.#scene.lines;
      },
    });
    this.#unsubscribe = player?.subscribe(() => this.#screen?.news());
  }

  /** Adds an event, which is on the screen within 100 ms, on a slow machine within a second. Never waits, never throws. */
  draw(event: RunEvent): void {
    this.#pending.push(event);
    this.#screen?.news();
  }

  /** Shows another state of the run, after a seek. */
  replace(model: RunModel): void {
    this.#pending = [];
    this.#model = model;
    this.#screen?.news();
  }

  /**
   * Keeps the view open after the last event until the operator chooses. Resolves with `leave` at once if the operator has left or
   * stopped the run here. So does a successful run that is no dry run, if no key was used.
   */
  rest(): Promise<AfterRun> {
    const { outcome, dryRun } = this.#currentModel();
    const isUnseen = outcome === "done" && !this.#isUsed && !dryRun;
    if (this.#hasLeft || this.#isStopped || isUnseen) return Promise.resolve("leave");
    // A dry run shows its plan first.
    const shown = dryRun && outcome === "done" ? { overlay: "foresight" as const, overlayTop: 0 } : {};
    this.#ui = { ...this.#ui, resting: true, stopping: false, ...shown };
    this.#screen?.news();
    return this.#rested.promise;
  }

  /** Gives the terminal back as it was. May be called twice. */
  async close(): Promise<void> {
    this.#unsubscribe?.();
    this.#call(0);
    await this.#screen?.close();
  }

  /** The model of the run with all pending events. */
  #currentModel(): RunModel {
    if (this.#pending.length > 0) this.#model = reduceEvents(this.#pending, this.#model);
    this.#pending = [];
    return this.#model;
  }

  #arrange(size: TerminalSize): Scene {
    const { theme, project, usual, paces, lastDryRun, player, now = Date.now } = this.#options;
    const model = this.#model;
    // A new question comes to the front, even if the operator has put an earlier question aside.
    if (model.questions.length > this.#openQuestions) {
      this.#ui = { ...this.#ui, aside: false };
      this.#newestQuestionAt = now();
    }
    this.#openQuestions = model.questions.length;
    if (!this.#options.player) this.#call(model.state === "finished" ? 0 : this.#openQuestions);
    const replay = player?.state();
    const scene = arrange({
      model,
      ui: this.#ui,
      size,
      theme,
      now: replay?.at ?? (model.state === "finished" ? model.lastAt : now()),
      real: now(),
      project,
      ...omitUndefined({ usual, paces, lastDryRun, player: replay, output: this.#paged }),
      isReading: this.#pager !== this.#paged,
    });
    this.#readOutput(scene.page.output, model.lastSeq);
    return scene;
  }

  /** Reads the whole output of the step in sight; a reader of another step is dropped. */
  #readOutput(place: OutputPlace | undefined, seq: number): void {
    const { read } = this.#options;
    if (!place || !read) this.#pager = undefined;
    else if (!this.#pager || !isSamePlace(this.#pager.place, place)) {
      const pager: OutputPager = new OutputPager(place, read, () => {
        if (this.#pager !== pager) return;
        if (pager.isComplete) this.#paged = pager;
        this.#screen?.news();
      });
      this.#pager = pager;
    }
    if (!this.#pager || (this.#paged && !isSameStep(this.#paged.place, this.#pager.place))) this.#paged = undefined;
    this.#pager?.follow(seq);
  }

  #press(press: KeyPress): void {
    this.#isUsed ||= !press.name.startsWith("ctrl+");
    // A key applies to the frame in sight, so newer events wait; the next key in the same frame applies to this key's result.
    if (this.#scene.ui !== this.#ui) this.#scene = this.#arrange(this.#screen?.size ?? { columns: 80, rows: 24 });
    // A key meant for the list must not answer a question that appeared at the same moment.
    const { now = Date.now } = this.#options;
    const isHasty = this.#scene.question?.kind === "confirm" && now() - this.#newestQuestionAt < hastyMs;
    if (isHasty && /^[yn]$/i.test(press.name)) return;
    const { ui, effect } = pressKey(this.#scene, press);
    this.#ui = ui;
    if (effect) this.#do(effect);
    this.#screen?.key();
  }

  #signal(signal: "SIGINT" | "SIGTERM" | "SIGHUP"): void {
    if (signal === "SIGINT") this.#do({ type: "interrupt" });
    else this.#leave("detached");
    this.#screen?.key();
  }

  #do(effect: RunEffect): void {
    const { send, player } = this.#options;
    switch (effect.type) {
      case "interrupt":
        return this.#interrupt();
      case "abort":
        this.#interrupts.skipToAbort();
        return send({ type: "abort" });
      case "leave":
        return this.#leave(effect.why);
      case "resume":
        return this.#rested.resolve("resume");
      case "answer":
        return send({ type: "answer", id: effect.id, value: effect.value });
      case "copy":
        this.#screen?.do(effect);
        return this.#say(`copied: ${effect.text}`, "ok");
      case "say":
        return this.#say(effect.text, "warning");
      case "suspend":
      case "redraw":
        return this.#screen?.do(effect);
      case "toggle":
        return player?.toggle();
      case "seek":
        return player?.seek(effect.by);
      case "step":
        return player?.step(effect.direction);
      case "speed": {
        const speed = (player?.state().speed ?? 1) * effect.factor;
        return player?.setSpeed(Math.max(0.25, Math.min(64, speed)));
      }
    }
  }

  #interrupt(): void {
    const { send, player } = this.#options;
    // A replay or an ended run cannot be stopped.
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
