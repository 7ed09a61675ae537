import type { IncomingMessage } from "node:http";
import { Refused } from "../refused.ts";

const largest = 1024 * 1024;
const deepest = 32;

/** A request's JSON body; an empty body is `{}`. Refuses what is too large, too deep or no JSON (S-17). */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > largest) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > largest) throw tooLarge();
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  if (text === "") return {};
  if (isDeeperThan(deepest, text))
    throw new Refused(400, "API_INVALID", `the body is nested deeper than ${deepest} levels`);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Refused(400, "API_INVALID", "the body is not JSON");
  }
}

function tooLarge(): Refused {
  return new Refused(413, "API_INVALID", `the body is larger than ${largest} bytes`);
}

/** Counts brackets outside strings, before any parser recurses into them. */
function isDeeperThan(limit: number, text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (inString) {
      if (character === "\\") index++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === "{" || character === "[") {
      if (++depth > limit) return true;
    } else if (character === "}" || character === "]") depth--;
  }
  return false;
}
