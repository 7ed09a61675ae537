import type { IncomingMessage } from "node:http";
import { Busy, Refused } from "../cluster/refused.ts";

const largestBody = 1024 * 1024;
const deepestNesting = 32;

/** The most bytes of the bodies of all unanswered requests together. */
const largestOfAll = 128 * 1024 * 1024;

export type BodyRoom = ReturnType<typeof openBodyRoom>;

/** Bounds the memory for the bodies of requests under way, which may wait for a slow disk or slow senders (S-17). */
export function openBodyRoom(limit = largestOfAll) {
  const bytesByRequest = new Map<object, number>();
  let sum = 0;
  return {
    /** Reserves bytes for a request until `release`. @throws Busy when there is no room */
    take(request: object, bytes: number): void {
      if (sum + bytes > limit) throw new Busy(503, "too much is being written at once");
      sum += bytes;
      bytesByRequest.set(request, (bytesByRequest.get(request) ?? 0) + bytes);
    },
    release(request: object): void {
      sum -= bytesByRequest.get(request) ?? 0;
      bytesByRequest.delete(request);
    },
  };
}

/** Reads a request's JSON body; an empty body is `{}`. @throws Refused for a body that is too large, too deep, cut off or no JSON, Busy without room (S-17) */
export async function readJson(request: IncomingMessage, room: BodyRoom): Promise<unknown> {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > largestBody) throw tooLarge();
  const text = await readBody(request, room);
  if (text === "") return {};
  if (isDeeperThan(deepestNesting, text))
    throw new Refused(400, "API_INVALID", `the body is nested deeper than ${deepestNesting} levels`);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Refused(400, "API_INVALID", "the body is not JSON");
  }
}

/** Reads by events: an async iterator costs more than all other work for a small request. */
function readBody(request: IncomingMessage, room: BodyRoom): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      try {
        if (size > largestBody) throw tooLarge();
        room.take(request, chunk.length);
        chunks.push(chunk);
      } catch (error) {
        request.pause();
        reject(error as Error);
      }
    });
    request.once("end", () => {
      const [only] = chunks;
      resolve((chunks.length === 1 && only ? only : Buffer.concat(chunks)).toString("utf8"));
    });
    // A client that disconnects in the middle of its body is no failure of the controller.
    const brokeOff = (): void => reject(new Refused(400, "API_INVALID", "the body broke off"));
    request.once("error", brokeOff);
    request.once("close", () => {
      if (!request.complete) brokeOff();
    });
  });
}

function tooLarge(): Refused {
  return new Refused(413, "API_INVALID", `the body is larger than ${largestBody} bytes`);
}

const [backslash, quote, brace, bracket, closingBrace, closingBracket] = Buffer.from('\\"{[}]');

/** Counts brackets outside strings, before any parser recurses into them. */
function isDeeperThan(limit: number, text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === backslash) index++;
      else if (code === quote) inString = false;
    } else if (code === quote) inString = true;
    else if (code === brace || code === bracket) {
      if (++depth > limit) return true;
    } else if (code === closingBrace || code === closingBracket) depth--;
  }
  return false;
}
