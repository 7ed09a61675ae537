import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { EncodedJson } from "../cluster/encoded-json.ts";
import { Busy } from "../cluster/refused.ts";
import type { YieldToLoop } from "./yield-to-loop.ts";

/** The longest turn of one answer in the event loop. */
const sliceMs = 5;
const chunkChars = 64 * 1024;
/** The time after which a client that reads nothing is cut. */
export const stalledClientMs = 30_000;

/** An answer whose lists are iterables, so that they are made while they are sent. */
export type ListAnswer<Answer> = {
  readonly [Field in keyof Answer]: NonNullable<Answer[Field]> extends readonly (infer Item)[]
    ? Iterable<Item | EncodedJson> | Extract<Answer[Field], undefined>
    : Answer[Field];
};

/** The most lists under way, for one caller's key and for all: each keeps a list of the registers' keys in memory. */
const listsOfKey = 16;
const listsOfAll = 64;

export type AnswerLists = ReturnType<typeof limitLists>;

/** Bounds the number of lists that are sent concurrently. */
export function limitLists(yieldToLoop: YieldToLoop) {
  const underway = new Map<string, number>();
  let count = 0;
  /**
   * Sends an answer with lists as one JSON document, in chunks, at the client's pace: neither a long list nor a slow client costs
   * other callers time or memory. Each item is current when it is sent. Resolves when all is sent or the client is gone. @throws Busy
   */
  return async (key: string, response: ServerResponse, make: () => object): Promise<void> => {
    const ofKey = underway.get(key) ?? 0;
    if (ofKey >= listsOfKey || count >= listsOfAll) throw new Busy(503, "too many lists are being sent");
    underway.set(key, ofKey + 1);
    count++;
    try {
      await send(response, make(), yieldToLoop);
    } finally {
      count--;
      const others = (underway.get(key) ?? 1) - 1;
      if (others > 0) underway.set(key, others);
      else underway.delete(key);
    }
  };
}

async function send(response: ServerResponse, answer: object, yieldToLoop: YieldToLoop): Promise<void> {
  response.writeHead(200, { "content-type": "application/json" });
  const texts = textsOf(answer);
  for (let isDone = false; !isDone;) {
    await yieldToLoop();
    if (response.destroyed) return;
    const until = performance.now() + sliceMs;
    let chunk = "";
    do {
      const next = texts.next();
      isDone = next.done === true;
      if (next.done !== true) chunk += next.value;
    } while (!isDone && chunk.length < chunkChars && performance.now() < until);
    if (!response.write(chunk)) await untilDrained(response);
  }
  response.end();
}

/** Resolves when the client has read the written bytes or is gone; cuts a client that reads nothing for `stalledClientMs`. */
async function untilDrained(response: ServerResponse): Promise<void> {
  if (response.destroyed || !response.writableNeedDrain) return;
  const closed = new AbortController();
  const leave = (): void => closed.abort();
  const timer = setTimeout(() => response.destroy(), stalledClientMs);
  response.once("close", leave);
  await once(response, "drain", { signal: closed.signal }).catch(() => undefined);
  response.off("close", leave);
  clearTimeout(timer);
}

function* textsOf(answer: object): Generator<string> {
  let before = "{";
  for (const [field, value] of Object.entries(answer) as [string, unknown][]) {
    if (value === undefined) continue;
    yield `${before}${JSON.stringify(field)}:`;
    before = ",";
    if (!isList(value)) {
      yield encode(value);
      continue;
    }
    let mark = "[";
    for (const item of value) {
      yield mark + encode(item);
      mark = ",";
    }
    yield mark === "[" ? "[]" : "]";
  }
  yield before === "{" ? "{}" : "}";
}

function isList(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

function encode(value: unknown): string {
  return value instanceof EncodedJson ? value.text : JSON.stringify(value);
}
