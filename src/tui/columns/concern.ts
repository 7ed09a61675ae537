import type { TextRole } from "../ink/theme.ts";

/** The urgency of a row, from 0: failed, needs attention, in order, of no interest. */
export type Concern = 0 | 1 | 2 | 3;

const roles: Readonly<Record<Concern, TextRole>> = { 0: "failed", 1: "warning", 2: "ok", 3: "muted" };

export function roleOf(concern: Concern): TextRole {
  return roles[concern];
}

const day = 86_400_000;

/** The concern of an expiry in ISO 8601. Leaf certificates are renewed at 30 days left, sub-CAs at 180: fewer days mean a missed renewal. */
export function concernOfExpiry(time: string | undefined, now: number): Concern {
  if (time === undefined || time === "") return 2;
  const left = Date.parse(time) - now;
  return left <= 7 * day ? 0 : left <= 30 * day ? 1 : 2;
}
