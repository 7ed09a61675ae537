import { expect } from "chai";
import { Semaphore } from "#engine/orchestrate/semaphore.ts";

/** Acquires a slot, and then adds `name` to `inside`. */
async function enter(slots: Semaphore, name: string, inside: string[]): Promise<() => void> {
  const release = await slots.acquire();
  inside.push(name);
  return release;
}

/** Ends after all promises that can settle now. */
const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe("Semaphore", () => {
  it("gives released slots in the order of requests", async () => {
    const inside: string[] = [];
    const slots = new Semaphore(1);
    const release = await enter(slots, "a", inside);
    const second = enter(slots, "b", inside);
    const third = enter(slots, "c", inside);
    await settle();
    expect(inside).to.deep.equal(["a"]);
    release();
    (await second)();
    await third;
    expect(inside).to.deep.equal(["a", "b", "c"]);
  });

  for (const waiting of [true, false])
    it(`gives a slot that is released twice to one ${waiting ? "waiting" : "later"} holder only`, async () => {
      const inside: string[] = [];
      const slots = new Semaphore(1);
      const release = await enter(slots, "a", inside);
      const others = (): void => ["b", "c"].forEach((name) => void enter(slots, name, inside));
      if (waiting) others();
      release();
      release();
      if (!waiting) others();
      await settle();
      expect(inside).to.deep.equal(["a", "b"]);
    });
});
