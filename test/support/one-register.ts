import type { JournalRecord } from "#controller/replica/replica-ports.ts";

/** The journal record of a transaction of one register, written by the origin `c1#old`. */
export function oneRegister(
  seq: number,
  key = `k/${seq}`,
  text: string | null = String(seq),
): Extract<JournalRecord, { t: "apply" }> {
  const registers = [[key, text, 1_700_000_000_000 + seq, 0, 0, seq, 0]] as const;
  return { t: "apply", page: { origins: ["c1#old"], contexts: [[]], registers }, upto: [["c1#old", seq]] };
}
