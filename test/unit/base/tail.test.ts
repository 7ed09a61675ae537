import { expect } from "chai";
import { createTail } from "#base/tail.ts";

describe("tail", () => {
  it("keeps everything below its limit", () => {
    const tail = createTail(10);
    tail.push(Buffer.from("one "));
    tail.push(Buffer.from("two"));
    expect(tail.text()).to.equal("one two");
  });

  it("keeps the last bytes, whatever the sizes of the chunks", () => {
    const tail = createTail(4);
    for (const chunk of ["abcdefghij", "k", "l", "m", "n", "o", "p", "q", "r"]) tail.push(Buffer.from(chunk));
    expect(tail.text()).to.equal("opqr");
  });

  it("drops a character that was cut", () => {
    const tail = createTail(5);
    tail.push(Buffer.from("xé€z"));
    expect(tail.text()).to.equal("€z");
  });
});
