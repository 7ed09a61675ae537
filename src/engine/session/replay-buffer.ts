import type { Frame } from "#engine/program/frames.ts";

/** Characters that are kept: the journal of some ten thousand steps. */
const maxCharacters = 8 << 20;
/** Memory that a kept frame takes beside its text. */
const overhead = 128;

/** Types of frames without a step's key, and of frames that are not replayed. */
const notReplayed: ReadonlySet<string> = new Set(["out", "quick", "fact", "wiping"]);

/**
 * Frames of a resumed run's journal for steps whose drafts are not known yet, to be replayed once they are. A node cannot fill the bastion's
 * memory with such frames (requirement S-4).
 */
export class ReplayBuffer {
  readonly #frames = new Map<string, Frame[]>();
  #characters = 0;

  /** Keeps a frame if its step is not known yet, and the buffer is not full. */
  add(frame: Frame, isKnown: (key: string) => boolean): void {
    const { type, rest } = frame;
    if (type === "quick")
      for (const [key] of rest.matchAll(/\S+/g)) {
        if (this.#characters > maxCharacters) return;
        if (!isKnown(key)) this.#keep(key, { type: "end", rest: `${key} ok 0` });
      }
    else if (!notReplayed.has(type)) {
      const [key = ""] = rest.split(" ", 1);
      if (!isKnown(key)) this.#keep(key, frame);
    }
  }

  framesOf(key: string): readonly Frame[] {
    return this.#frames.get(key) ?? [];
  }

  #keep(key: string, frame: Frame): void {
    if ((this.#characters += frame.rest.length + overhead) > maxCharacters) return;
    const frames = this.#frames.get(key);
    if (frames) frames.push(frame);
    else this.#frames.set(key, [frame]);
  }
}
