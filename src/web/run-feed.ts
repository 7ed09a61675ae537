import { readFile } from "node:fs/promises";
import { wait } from "#base/wait.ts";
import { parseRecording } from "#engine/events/recording.ts";
import { reduceEvents, RunFold } from "#engine/events/reduce.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { RunClient } from "#engine/run/run-client.ts";
import type { RunFolder } from "#engine/run/run-folder.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Html } from "#tui/html/html.ts";
import { LiveParts } from "./live-parts.ts";
import { RunParts, type RunPartsOptions } from "./run-parts.ts";

/** Fewest milliseconds between two drawings of a living run. */
const liveRedrawMs = 250;
/** Milliseconds until an ended run is followed again: an operator may resume it. */
const followAgainMs = 2000;
/** The pause after a drawing, as a multiple of the drawing's time. */
const pauseFactor = 5;

export interface FeedOptions extends RunPartsOptions {
  /** Whether the run's process lives. */
  readonly isAlive: boolean;
}

/** A run and its page; follows the run until `close`. */
export class RunFeed {
  readonly live = new LiveParts();
  readonly parts: RunParts;
  readonly #follower: RunClient;
  readonly #fold: RunFold;
  readonly #stop = new AbortController();
  #isDrawing = false;
  #isLive: boolean;
  #changes = 0;

  private constructor(follower: RunClient, fold: RunFold, { isAlive, ...options }: FeedOptions) {
    this.#isLive = isAlive && fold.borrowedModel.state !== "finished";
    this.#follower = follower;
    this.#fold = fold;
    this.parts = new RunParts(options);
    void this.#follow();
  }

  /** Reads the record of a run, if there is one, and follows the run from its end on. @throws KcoreError RUN_RECORD_CORRUPT */
  static async open(folder: RunFolder, { by, ...options }: FeedOptions & { readonly by: string }): Promise<RunFeed> {
    const bytes = await readFile(folder.events).catch(() => Buffer.alloc(0));
    const { events, length } = parseRecording(bytes, folder.events);
    const fold = new RunFold(reduceEvents(events));
    return new RunFeed(new RunClient({ folder, by, answers: false, from: length }), fold, options);
  }

  get model(): RunModel {
    return this.#fold.model;
  }

  /** Whether a process works on the run, as far as the feed knows. */
  get isLive(): boolean {
    return this.#isLive;
  }

  close(): void {
    this.#stop.abort();
    this.#follower.leave();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        for await (const event of this.#follower.events()) {
          this.#fold.add(event);
          this.#noteChange(this.#fold.borrowedModel.state !== "finished");
        }
      } catch (error) {
        // The run's process died. Its page says “not finished”, and an operator may resume the run.
        if (!(error instanceof KcoreError)) throw error;
      }
      if (this.#isLive) this.#noteChange(false);
      await wait(followAgainMs, signal).catch(() => undefined);
    }
  }

  /** The present page's body, and its version. `base`: the address of the run. */
  page(base: string): { readonly body: Html; readonly version: string } {
    this.live.show(this.parts.draw(this.model, this.#isLive));
    return { body: this.parts.drawPage(this.model, { base, isLive: this.#isLive }), version: this.live.version };
  }

  #noteChange(isLive: boolean): void {
    this.#isLive = isLive;
    this.#changes += 1;
    void this.#draw();
  }

  /** Draws changes while a browser reads the page; pauses keep drawing below a fifth of the time. */
  async #draw(): Promise<void> {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    const { signal } = this.#stop;
    for (let drawn = -1; drawn !== this.#changes && this.live.isRead && !signal.aborted;) {
      drawn = this.#changes;
      const began = performance.now();
      this.live.show(this.parts.draw(this.model, this.#isLive));
      const pause = Math.max(liveRedrawMs, pauseFactor * (performance.now() - began));
      await wait(pause, signal).catch(() => undefined);
    }
    this.#isDrawing = false;
  }
}
