import { expect } from "chai";
import { createChunkQueue } from "#engine/transport/chunk-queue.ts";

const bytes = (text: string) => Buffer.from(text);
async function readAll(queue: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of queue) text += Buffer.from(chunk).toString();
  return text;
}

describe("chunk queue", () => {
  it("gives what was pushed before and while reading, in order", async () => {
    const queue = createChunkQueue(100, () => undefined);
    queue.push(bytes("a"));
    const reading = readAll(queue);
    await Promise.resolve();
    queue.push(bytes("b"));
    queue.push(bytes("c"));
    queue.end();
    expect(await reading).to.equal("abc");
  });

  it("asks for a pause at its limit and for more at half of it", async () => {
    let room = 0;
    const queue = createChunkQueue(4, () => room++);
    expect([queue.push(bytes("abc")), queue.push(bytes("d"))]).to.deep.equal([true, false]);
    expect(queue.push(bytes("ef"))).to.equal(false);
    const reader = queue[Symbol.asyncIterator]();
    await reader.next();
    expect(room).to.equal(0);
    await reader.next();
    expect([room, queue.push(bytes("g"))]).to.deep.equal([1, true]);
  });

  it("is drained when its end was told and everything read, not before", async () => {
    const queue = createChunkQueue(100, () => undefined);
    let drained = false;
    void queue.drained.then(() => (drained = true));
    queue.push(bytes("a"));
    queue.end();
    await Promise.resolve();
    expect([drained, await readAll(queue)]).to.deep.equal([false, "a"]);
    await queue.drained;
  });

  it("is drained at its end when nothing was pushed", async () => {
    const queue = createChunkQueue(100, () => undefined);
    queue.end();
    await queue.drained;
  });

  it("ends a waiting reader when discarded, and takes no more", async () => {
    const queue = createChunkQueue(100, () => undefined);
    const reading = readAll(queue);
    await Promise.resolve();
    queue.discard();
    queue.push(bytes("late"));
    expect(await reading).to.equal("");
    await queue.drained;
  });
});
