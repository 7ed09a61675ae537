import { expect } from "chai";
import { createTail } from "#base/tail.ts";

describe("tail", () => {
  it("keeps the last bytes of chunks of any size, and drops a character that was cut", () => {
    for (const [limit, kept, ...chunks] of [
      [10, "one two", "one ", "two"],
      [4, "opqr", "abcdefghij", "k", "l", "m", "n", "o", "p", "q", "r"],
      [5, "€z", "xé€z"],
    ] as const) {
      const tail = createTail(limit);
      for (const chunk of chunks) tail.push(Buffer.from(chunk));
      expect(tail.text()).to.equal(kept);
    }
  });
});
