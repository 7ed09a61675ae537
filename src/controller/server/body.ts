import type { IncomingMessage } from "node:http";
import { Refused } from "../cluster/refused.ts";

const largest = 1024 * 1024;
const deepest = 32;

/** A request's JSON body; an empty body is `{}`. Refuses what is too large, too deep or no JSON (S-17). */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > largest) throw tooLarge();
  const text = await readText(request);
  if (text === "") return {};
  if (isDeeperThan(deepest, text))
    throw new Refused(400, "API_INVALID", `the body is nested deeper than ${deepest} levels`);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Refused(400, "API_INVALID", "the body is not JSON");
  }
}

/** By events: an async iterator costs more than all else that is done for a small request. */
function readText(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= largest) return void chunks.push(chunk);
      request.pause();
      reject(tooLarge());
    });
    request.once("end", () => {
      const [only] = chunks;
      resolve((chunks.length === 1 && only ? only : Buffer.concat(chunks)).toString("utf8"));
    });
    // Whoever goes away in the middle of his words is no failure of ours.
    const brokeOff = (): void => reject(new Refused(400, "API_INVALID", "the body broke off"));
    request.once("error", brokeOff);
    request.once("close", () => {
      if (!request.complete) brokeOff();
    });
  });
}

function tooLarge(): Refused {
  return new Refused(413, "API_INVALID", `the body is larger than ${largest} bytes`);
}

const [backslash, quote, brace, bracket] = [0x5c, 0x22, 0x7b, 0x5b];

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
    } else if (code === brace + 2 || code === bracket + 2) depth--;
  }
  return false;
}
