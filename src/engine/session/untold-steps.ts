import type { Frame } from "#engine/program/frames.ts";

/** Characters of a node's journal that are kept before its steps are known: that of some hundred thousand steps. */
const limit = 64 << 20;

/** Frames that begin with no step's key, or that are of no use later. */
const notOfOne: ReadonlySet<string> = new Set(["out", "quick", "fact"]);

/**
 * What the journal of an earlier process of this run says of steps whose drafts are not known yet, by key. No node may
 * fill our memory with it (requirement S-4).
 */
export class UntoldSteps {
  readonly #frames = new Map<string, Frame[]>();
  #characters = 0;

  /** Keeps what the frame says of steps that are not known yet. */
  hear(frame: Frame, isKnown: (key: string) => boolean): void {
    const { type, rest } = frame;
    const keys = rest.split(" ").slice(0, type === "quick" ? undefined : 1);
    for (const key of keys.filter((one) => !isKnown(one))) {
      if (type === "quick") this.#keep(key, { type: "end", rest: `${key} ok 0` });
      else if (!notOfOne.has(type)) this.#keep(key, frame);
    }
  }

  of(key: string): readonly Frame[] {
    return this.#frames.get(key) ?? [];
  }

  #keep(key: string, frame: Frame): void {
    if ((this.#characters += frame.rest.length) > limit) return;
    const frames = this.#frames.get(key);
    if (frames) frames.push(frame);
    else this.#frames.set(key, [frame]);
  }
}
