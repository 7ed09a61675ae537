import type { Frame } from "#engine/program/frames.ts";

/** Characters of a node's journal that are kept before its steps are known: that of some ten thousand steps. */
const limit = 8 << 20;
/** What keeping one takes beside its text. */
const overhead = 128;

/** Frames that begin with no step's key, or that are of no use later. */
const notOfOne: ReadonlySet<string> = new Set(["out", "quick", "fact", "wiping"]);

/**
 * What the journal of an earlier process of this run says of steps whose drafts are not known yet, by key. No node may
 * fill our memory with it (requirement S-4).
 */
export class ReplayBuffer {
  readonly #frames = new Map<string, Frame[]>();
  #characters = 0;

  /** Keeps what the frame says of steps that are not known yet. */
  hear(frame: Frame, isKnown: (key: string) => boolean): void {
    const { type, rest } = frame;
    if (type === "quick")
      for (const [key] of rest.matchAll(/\S+/g)) {
        if (this.#characters > limit) return;
        if (!isKnown(key)) this.#keep(key, { type: "end", rest: `${key} ok 0` });
      }
    else if (!notOfOne.has(type)) {
      const [key = ""] = rest.split(" ", 1);
      if (!isKnown(key)) this.#keep(key, frame);
    }
  }

  of(key: string): readonly Frame[] {
    return this.#frames.get(key) ?? [];
  }

  #keep(key: string, frame: Frame): void {
    if ((this.#characters += frame.rest.length + overhead) > limit) return;
    const frames = this.#frames.get(key);
    if (frames) frames.push(frame);
    else this.#frames.set(key, [frame]);
  }
}
