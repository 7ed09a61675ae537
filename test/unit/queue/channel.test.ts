import { expect } from "chai";
import { BadMessage, Channel } from "#queue/channel.ts";

describe("the messages of a job", () => {
  const key = Buffer.alloc(32, 1);
  const pair = (context = "run.1.1 s reports") => [new Channel(key, context), new Channel(key, context)] as const;

  it("open in their order alone", () => {
    const [from, to] = pair();
    const [first, second] = [from.seal({ tell: "ended" }), from.seal("two")];
    expect(to.open(first)).to.deep.equal({ tell: "ended" });
    expect(() => to.open(first), "sent again").to.throw(BadMessage);
    const [, other] = pair();
    expect(() => other.open(second), "the first one is lost").to.throw(BadMessage);
  });

  it("do not open changed, cut off, or in the place of another job", () => {
    const [from, to] = pair();
    const bytes = from.seal("text");
    const changed = Buffer.from(bytes);
    changed[0] = (changed[0] ?? 0) ^ 1;
    expect(() => to.open(changed)).to.throw(BadMessage);
    expect(() => pair()[1].open(bytes.subarray(0, 10))).to.throw(BadMessage);
    expect(() => pair("run.1.2 s reports")[1].open(bytes)).to.throw(BadMessage);
    expect(() => new Channel(Buffer.alloc(32, 2), "run.1.1 s reports").open(bytes)).to.throw(BadMessage);
  });
});
