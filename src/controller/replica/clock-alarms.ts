// “Wrong clocks do not write” (docs/replication.md): the alarms about this controller's clock and its peers' clocks.
import { nextStamp } from "#crdt/hlc.ts";
import type { Core } from "./replica-core.ts";
import { controllerOf } from "./registered-controllers.ts";

/** The time in ms until a new stamp, which must exceed all issued and seen ones, is not too far ahead of the wall clock; 0: now. */
export function stampWaitOf({ state, options, tuning }: Core): number {
  const wall = options.clock.wall();
  return Math.max(0, nextStamp(state.clock, wall).ms - wall - tuning.maxIssueAhead);
}

/** Raises or clears the alarms about this controller's own clock. */
export function raiseClockAlarms(core: Core): void {
  const { alarms, guard, options, hasCompany } = core;
  const { id } = options;
  alarms.set(guard.isFenced(), "FENCED", id, "this controller's clock is too far from its peers'; it is read-only");
  const jump = guard.jump({ isAlone: !hasCompany });
  const direction = jump > 0 ? "ahead" : "back";
  const until = hasCompany
    ? "it is read-only until a peer's clock agrees, or the clock is set back. " +
      "If the clock is right and no other controller is left: stop this controller, kcore controller repair --alone, start it"
    : "writes wait a few seconds, in case the clock is set back";
  alarms.set(
    jump !== 0,
    "CLOCK_JUMP",
    id,
    `this controller's clock jumped ${inWords(Math.abs(jump))} ${direction}; ${until}`,
  );
  const ahead = stampWaitOf(core);
  alarms.set(ahead > 0, "CLOCK_AHEAD", id, ahead > 0 ? describeAhead(core, ahead) : "");
}

/** Raises or clears the alarm that a peer's clock differs from this controller's. */
export function watchDrift({ guard, tuning, alarms }: Core, peer: string): void {
  const offset = guard.offsetOf(peer) ?? 0;
  const text = `the clock of ${peer} differs by ${Math.round(offset)} ms`;
  alarms.set(guard.driftOf(peer) >= tuning.driftWarning, "CLOCK_DRIFT", peer, text);
}

function describeAhead({ state, options, tuning }: Core, ahead: number): string {
  const { id, clock } = options;
  const limit = clock.wall() + tuning.maxReceiveAhead;
  let waiting = 0;
  for (const { o, ms } of state.map.all()) if (ms > limit && controllerOf(o) === id) waiting++;
  const own = waiting === 0 ? "" : `; ${waiting} values that it wrote itself wait on the other controllers`;
  return (
    `this controller's clock is behind what it has stamped or seen, so it is read-only for ${inWords(ahead)}${own}. ` +
    "If the clock is right now: stop this controller, kcore controller repair, start it"
  );
}

/** A duration as its two largest units that are not zero: `59m 40s`. */
export function inWords(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ] as const;
  return (
    parts
      .flatMap(([count, unit]) => (count > 0 ? [`${count}${unit}`] : []))
      .slice(0, 2)
      .join(" ") || "0s"
  );
}
