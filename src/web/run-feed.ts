import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { parseRecording } from "#engine/events/recording.ts";
import { reduceEvents, RunFold } from "#engine/events/reduce.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { RunFollower } from "#engine/run/follow-run.ts";
import type { RunFolder } from "#engine/run/run-folder.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Html } from "#tui/html/html.ts";
import { Board } from "./board.ts";
import { RunParts, type RunPartsOptions } from "./run-parts.ts";

/** Milliseconds between two pictures of a run that goes on, and between two looks at one that does not. */
const paces = { picture: 250, look: 2000 } as const;
/** Of the time, pictures take one part in so many at most. */
const SHARE = 5;

export interface FeedOptions extends RunPartsOptions {
  /** Its process lives. */
  readonly isAlive: boolean;
}

/** A run as it stands, and its page; it goes on by itself as long as somebody reads it. */
export class RunFeed {
  readonly board = new Board();
  readonly parts: RunParts;
  readonly #follower: RunFollower;
  readonly #fold: RunFold;
  readonly #stop = new AbortController();
  #isDrawing = false;
  #isLive: boolean;
  /** Counts what a picture may show. */
  #changes = 0;

  private constructor(follower: RunFollower, fold: RunFold, { isAlive, ...options }: FeedOptions) {
    this.#isLive = isAlive && fold.fleeting.state !== "finished";
    this.#follower = follower;
    this.#fold = fold;
    this.parts = new RunParts(options);
    void this.#follow();
  }

  /** Reads what is recorded of a run, and follows it from there on. @throws KcoreError RUN_RECORD_CORRUPT */
  static async open(folder: RunFolder, { by, ...options }: FeedOptions & { readonly by: string }): Promise<RunFeed> {
    const bytes = await readFile(folder.events).catch(() => Buffer.alloc(0));
    const { events, length } = parseRecording(bytes, folder.events);
    const fold = new RunFold(reduceEvents(events));
    return new RunFeed(new RunFollower({ folder, by, answers: false, from: length }), fold, options);
  }

  get model(): RunModel {
    return this.#fold.model;
  }

  /** Whether the run's process was last seen at work on the run. */
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
          this.#note(this.#fold.fleeting.state !== "finished");
        }
      } catch (error) {
        // It died: its page says that it is not finished. Somebody may resume it.
        if (!(error instanceof KcoreError)) throw error;
      }
      if (this.#isLive) this.#note(false);
      await sleep(paces.look, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** The page as it is now, and the version of the board that it shows. */
  page(base: string): { readonly body: Html; readonly version: string } {
    this.board.show(this.parts.draw(this.model, this.#isLive));
    return { body: this.parts.drawPage(this.model, { base, isLive: this.#isLive }), version: this.board.version };
  }

  #note(isLive: boolean): void {
    this.#isLive = isLive;
    this.#changes += 1;
    void this.#draw();
  }

  /** Pictures for those who read, never so often that drawing is all that is done. */
  async #draw(): Promise<void> {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    const { signal } = this.#stop;
    for (let drawn = -1; drawn !== this.#changes && this.board.isRead && !signal.aborted;) {
      drawn = this.#changes;
      const began = performance.now();
      this.board.show(this.parts.draw(this.model, this.#isLive));
      await sleep(Math.max(paces.picture, SHARE * (performance.now() - began)), undefined, { ref: false });
    }
    this.#isDrawing = false;
  }
}
