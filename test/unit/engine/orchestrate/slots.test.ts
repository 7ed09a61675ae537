import { expect } from "chai";
import { Slots } from "#engine/orchestrate/slots.ts";

/** Asks for a slot and notes under `name` when it got one. */
async function enter(slots: Slots, name: string, inside: string[]): Promise<() => void> {
  const release = await slots.take();
  inside.push(name);
  return release;
}

/** Lets every promise that can settle now do so. */
const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe("slots", () => {
  it("let in the next one in order when one is given back", async () => {
    const inside: string[] = [];
    const slots = new Slots(1);
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
    it(`given back twice let in one, not two, ${waiting ? "that waits" : "that comes later"}`, async () => {
      const inside: string[] = [];
      const slots = new Slots(1);
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
