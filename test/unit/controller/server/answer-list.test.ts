import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { EncodedJson } from "#controller/cluster/encoded-json.ts";
import { Busy } from "#controller/cluster/refused.ts";
import { limitLists } from "#controller/server/answer-list.ts";
import { queueYields } from "#controller/server/yield-to-loop.ts";

/** A response whose client reads at once if it is quick, else when `read` is called. */
class Response extends EventEmitter {
  readonly isQuick: boolean;
  text = "";
  writableNeedDrain = false;
  destroyed = false;
  isEnded = false;
  onChunk = (): void => undefined;

  constructor(isQuick = true) {
    super();
    this.isQuick = isQuick;
  }

  writeHead(): void {}

  write(chunk: string): boolean {
    this.text += chunk;
    this.onChunk();
    this.writableNeedDrain = !this.isQuick;
    return this.isQuick;
  }

  end(): void {
    this.isEnded = true;
  }

  read(): void {
    this.writableNeedDrain = false;
    this.emit("drain");
  }

  leave(): void {
    this.destroyed = true;
    this.emit("close");
  }

  as(): ServerResponse {
    return this as unknown as ServerResponse;
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("an answer with lists", () => {
  function* items(count: number, onItem: () => void = () => undefined): Generator<object> {
    for (let index = 0; index < count; index++) {
      onItem();
      yield { index, text: "x".repeat(1000) };
    }
  }

  it("is one JSON document of lists and other values", async () => {
    const response = new Response();
    const answer = { empty: [], left: undefined, list: [{ a: 1 }, new EncodedJson('{"b":2}')], plain: "word" };
    await limitLists(queueYields())("k", response.as(), () => answer);
    expect(JSON.parse(response.text)).to.deep.equal({ empty: [], list: [{ a: 1 }, { b: 2 }], plain: "word" });
    expect(response.isEnded).to.equal(true);
  });

  it("is written one piece per turn of the event loop for all clients together", async () => {
    const lists = limitLists(queueYields());
    let turn = 0;
    let isDone = false;
    const turnsOfPieces: number[] = [];
    const responses = Array.from({ length: 4 }, () => new Response());
    for (const response of responses) response.onChunk = () => void turnsOfPieces.push(turn);
    const sent = Promise.all(responses.map((each) => lists("k", each.as(), () => ({ all: items(500) }))));
    void sent.then(() => (isDone = true));
    for (; !isDone; turn++) await nextTurn();
    expect(turnsOfPieces.length).to.be.at.least(4 * 7);

    expect(new Set(turnsOfPieces).size).to.equal(turnsOfPieces.length);
    for (const { text } of responses) expect((JSON.parse(text) as { all: object[] }).all).to.have.length(500);
  });

  it("is computed at the client's pace, and stops when the client has gone", async () => {
    const response = new Response(false);
    let made = 0;
    const sent = limitLists(queueYields())("k", response.as(), () => ({ all: items(10_000, () => made++) }));
    for (let turn = 0; turn < 20; turn++) await nextTurn();
    expect(made).to.be.within(1, 80);
    response.read();
    for (let turn = 0; turn < 20; turn++) await nextTurn();
    expect(made).to.be.within(2, 160);
    response.leave();
    await sent;
    expect(made).to.be.lessThan(160);
    expect(response.isEnded).to.equal(false);
  });

  it("S-17: is refused with 503 and Retry-After to a key with 16 answers under way", async () => {
    const lists = limitLists(queueYields());
    const open = Array.from({ length: 16 }, () => new Response(false));
    const sent = open.map((each) => lists("k", each.as(), () => ({ all: items(1000) })));
    const refused = await lists("k", new Response().as(), () => ({ all: [] })).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Busy);
    expect(refused).to.include({ status: 503, code: "API_BUSY", retryAfterSecs: 1 });
    await lists("another", new Response().as(), () => ({ all: [] }));
    for (const each of open) each.leave();
    await Promise.all(sent);
    // Finished lists do not count towards the 64 that may be under way.
    for (let times = 0; times < 65; times++) await lists("k", new Response().as(), () => ({ all: [] }));
  });
});
