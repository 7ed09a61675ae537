import type { RunEventBody } from "#engine/events/event.ts";

/** @throws when a claim does not hold */
export function holds(claim: boolean, what: string): void {
  if (!claim) throw new Error(`this does not hold: ${what}`);
}

/** The outcome of every step is told once; a run that is resumed tries again what had failed, and tells of that too. */
export function toldOnce(events: readonly RunEventBody[], isResumed: boolean): void {
  const told = events.flatMap((event) =>
    event.type === "step.finished" && !(isResumed && ["failed", "interrupted"].includes(event.outcome))
      ? [event.step]
      : [],
  );
  holds(new Set(told).size === told.length, "the outcome of a step is told once");
}
