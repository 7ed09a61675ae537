import type { Dot } from "#crdt/register.ts";
import { Refused } from "./refused.ts";

/** A dot as a text, `SEQ@ORIGIN`. */
export function encodeDot({ o, s }: Dot): string {
  return `${s}@${o}`;
}

/** The dot in a text; null for `absent`, which stands for a register that does not exist. @throws Refused 400 */
export function decodeDot(text: string): Dot | null {
  if (text === "absent") return null;
  const [, seq, origin] = /^(\d{1,16})@(.+)$/.exec(text) ?? [];
  if (seq === undefined || origin === undefined)
    throw new Refused(400, "API_INVALID", `ifMatch: “${text.slice(0, 80)}” is not a version`);
  return { o: origin, s: Number(seq) };
}
