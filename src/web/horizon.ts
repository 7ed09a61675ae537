const minute = 60_000;
const hour = 60 * minute;
const steps = [10_000, 20_000, 30_000, minute, 2 * minute, 5 * minute, 10 * minute, 20 * minute, 30 * minute, hour];

/**
 * Milliseconds that the time axis of a living run spans: a round time beyond what has passed, so that the bars of all
 * rows are drawn anew now and then, and not with each second.
 */
export function horizonOf(passed: number): number {
  const step = steps.find((one) => one > passed);
  if (step !== undefined) return step;
  let long = 2 * hour;
  while (long <= passed) long *= 2;
  return long;
}
