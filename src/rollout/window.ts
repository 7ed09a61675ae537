import { weekdays, type UpdateSpec } from "./spec.ts";

const dayMs = 86_400_000;

/** Whether nodes may be started now: inside of the maintenance window, or there is none. Times are UTC. */
export function isInWindow(window: UpdateSpec["window"], now: number): boolean {
  if (!window) return true;
  const { days, from, to } = window;
  const [begins, ends] = [msOf(from), msOf(to)];
  const at = now % dayMs;
  const begunOn = (ms: number): boolean => days === undefined || days.includes(dayOf(ms));
  if (begins < ends) return at >= begins && at < ends && begunOn(now);
  // Over midnight, or a whole day: the day on which it began counts.
  return at >= begins ? begunOn(now) : at < ends && begunOn(now - dayMs);
}

function msOf(text: string): number {
  const [hours = 0, minutes = 0] = text.split(":").map(Number);
  return (hours * 60 + minutes) * 60_000;
}

/** 1970-01-01 was a Thursday. */
function dayOf(ms: number): (typeof weekdays)[number] {
  return weekdays[(Math.floor(ms / dayMs) + 3) % 7] ?? "mon";
}
