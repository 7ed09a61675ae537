import { shellUnusable } from "#engine/transport/unreachable.ts";
import type { Problem } from "#errors/problem.ts";
import {
  go,
  stay,
  tellRunner,
  type Connection,
  type ConnectionPhase,
  type Retry,
  type Wanted,
} from "./connection-state.ts";
import type { ConnectionEvent, Effect, Message, Next, Setting, Trouble } from "./session-events.ts";
import { confirmationDue, connectionLost, rebootStopped, rebootTooLong, unreachable } from "./problems.ts";

const rebootPause = 2_000;
const renewalPause = 2_000;
/** Milliseconds that a node may take to take a change back. */
const renewalSlack = 60_000;

export function connectionAfter(state: Connection, event: ConnectionEvent, setting: Setting): Next<Connection> {
  const { phase } = state;
  const isBeingMade = phase.at === "dialling" || phase.at === "greeting";
  const isThere = phase.at === "attaching" || phase.at === "open" || phase.at === "leaving";
  switch (event.type) {
    case "dial":
      if (phase.at === "dropping") return go(state, { ...phase, next: event });
      return phase.at === "none" ? dial(state, event) : stay(state);
    case "reached":
      if (phase.at !== "dialling") return stay(state);
      return go({ ...state, unanswered: state.unanswered + 1, reachedAt: setting.now }, { ...phase, at: "greeting" });
    case "opened":
      if (phase.at === "dropping") return dropped(state, phase, { do: "hang-up" });
      if (!isBeingMade) return stay(state);
      // Who only looks wants to know that the node's shell does what a run needs.
      return phase.purpose !== "flight" && !phase.isTold
        ? go(state, { at: "attaching" }, { do: "start-beat" }, tellRunner("opened"))
        : go(state, { at: "open" }, { do: "start-beat" }, tellRunner("opened"), tellRunner("up"));
    case "refused":
      if (phase.at === "dropping") return dropped(state, phase);
      return isBeingMade ? refused(state, phase, event.problem, setting) : stay(state);
    case "lost":
      if (phase.at === "leaving") return go(state, { at: "none" }, { do: "stop-beat" }, tellRunner("cut"));
      return isThere ? lost(state, connectionLost(setting.node, event.said), setting) : stay(state);
    case "judged":
      if (phase.at !== "doubted") return stay(state);
      if (event.isHostGone) return comeBack(state, phase.problem, setting);
      return giveUp(state, { problem: shellUnusable(setting.node, phase.problem.detail), outcome: "failed" });
    case "waited": {
      if (phase.at !== "pausing") return stay(state);
      const { attempt, retry } = phase;
      if (retry.reboot && setting.now > retry.reboot.until) return giveUp(state, notBack(state, phase, setting));
      return dial(state, { purpose: "attach", attempt, retry });
    }
    case "hello":
      return hello(state, event, setting);
    case "told":
      if (phase.at === "greeting") return go(state, { ...phase, isTold: true });
      return phase.at === "attaching" ? go(state, { at: "open" }, tellRunner("up")) : stay(state);
    case "expect-reboot":
      return { state: { ...state, reboot: event.within }, effects: [] };
    case "renew":
      // One that is being made is new.
      return phase.at === "open" ? renew(state, event.within, setting) : stay(state);
    case "stop": {
      const stopped = { ...state, isStopped: true };
      if (phase.at !== "pausing" || !phase.retry.reboot) return stay(stopped);
      return giveUp(stopped, notBack(stopped, phase, setting), { do: "forget", timer: "retry" });
    }
    case "let-go":
      if (phase.at === "attaching" || phase.at === "open") return go(state, { at: "leaving" });
      return isThere ? stay(state) : hangUp(state);
    case "hang-up":
      return hangUp(state, ...(isThere ? [{ do: "stop-beat" } as const] : []));
  }
}

function dial(state: Connection, { purpose, attempt, retry }: Wanted, ...effects: readonly Effect[]): Next<Connection> {
  const phase = { at: "dialling", purpose, attempt, ...(retry && { retry }) } as const;
  return go(state, phase, ...effects, { do: "dial", attempt, withFlight: purpose === "flight" });
}

function dropped(state: Connection, { next }: { next?: Wanted }, ...effects: readonly Effect[]): Next<Connection> {
  return next ? dial(state, next, ...effects) : go(state, { at: "none" }, ...effects, tellRunner("cut"));
}

function refused(
  state: Connection,
  { at, purpose, attempt, retry }: Wanted & { readonly at: "dialling" | "greeting" },
  problem: Problem,
  setting: Setting,
): Next<Connection> {
  // It waits, and nobody can open it: it would for ever.
  if (retry && problem.code !== "UNLOCK_FAILED") return pause(state, { problem, attempt: attempt + 1, retry }, setting);
  const isGone = unreachable.has(problem.code);
  if (at !== "greeting" || purpose !== "flight" || !isGone)
    return giveUp(state, { problem, outcome: isGone ? "unreachable" : state.isStopped ? "interrupted" : "failed" });
  // The connection broke under the flight: what arrived of it runs, and holds the node's lock. Go and see.
  return comeBack(state, connectionLost(setting.node, ""), setting, tellRunner("down"));
}

function lost(state: Connection, problem: Problem, setting: Setting): Next<Connection> {
  if (state.boot !== undefined) return comeBack(state, problem, setting, { do: "stop-beat" }, tellRunner("down"));
  return go(state, { at: "doubted", problem }, { do: "stop-beat" }, tellRunner("down"), { do: "judge" });
}

function comeBack(
  state: Connection,
  problem: Problem,
  setting: Setting,
  ...effects: readonly (Effect | Message)[]
): Next<Connection> {
  const within = state.reboot;
  const retry: Retry = {
    pauses: setting.retryDelays.slice(Math.max(0, state.unanswered - 1)),
    reboot: within === undefined ? undefined : { within, until: setting.now + within },
  };
  return pause(state, { problem, attempt: 2, retry }, setting, ...effects, { do: "hang-up" });
}

/** Comes back over a new connection; where the change keeps it out, until the node has taken it back. */
function renew(state: Connection, within: number, setting: Setting): Next<Connection> {
  const pauses = [
    0,
    ...Array.from({ length: Math.ceil((within * 1_000 + renewalSlack) / renewalPause) }, () => renewalPause),
  ];
  const problem = confirmationDue(setting.node, within);
  const retry: Retry = { pauses, reboot: undefined };
  return pause(state, { problem, attempt: 2, retry }, setting, { do: "stop-beat" }, tellRunner("down"), {
    do: "hang-up",
  });
}

function pause(
  state: Connection,
  { problem, attempt, retry }: Omit<Extract<ConnectionPhase, { at: "pausing" }>, "at">,
  setting: Setting,
  ...effects: readonly (Effect | Message)[]
): Next<Connection> {
  const { node, runId, chance } = setting;
  const { reboot, pauses } = retry;
  if (reboot && state.isStopped) return giveUp(state, notBack(state, { problem, retry }, setting), ...effects);
  const [first = reboot && rebootPause, ...later] = reboot ? [] : pauses;
  if (first === undefined) {
    const hint = `the node finishes its running step; go on with: kcore runs resume ${runId}`;
    return giveUp(state, { problem: { ...problem, hint }, outcome: "unreachable" }, ...effects);
  }
  const milliseconds = first * (0.5 + chance);
  const retryIn = Math.round(milliseconds);
  return go(
    state,
    { at: "pausing", problem, attempt, retry: { ...retry, pauses: later } },
    ...effects,
    {
      do: "emit",
      event: { type: "node.disconnected", node, reason: problem.message, ...(milliseconds > 0 && { retryIn }) },
    },
    { do: "wait", timer: "retry", milliseconds },
    ...(reboot ? [{ to: "queue", event: { type: "away", problem } } as const] : []),
  );
}

function notBack(
  { isStopped }: Connection,
  { problem, retry }: { readonly problem: Problem; readonly retry: Retry },
  setting: Setting,
): Trouble {
  if (isStopped) return { outcome: "interrupted", problem: rebootStopped(setting.node) };
  return { outcome: "failed", problem: rebootTooLong(setting, retry.reboot?.within ?? 0, problem.message) };
}

function giveUp(state: Connection, trouble: Trouble, ...effects: readonly (Effect | Message)[]): Next<Connection> {
  const failed: Message = { to: "queue", event: { type: "failed", ...trouble } };
  return go(state, { at: "none" }, ...effects, tellRunner("unreachable"), failed);
}

function hangUp(state: Connection, ...effects: readonly Effect[]): Next<Connection> {
  const { at } = state.phase;
  if (at === "dialling" || at === "greeting" || at === "dropping") return go(state, { at: "dropping" });
  return go(state, { at: "none" }, ...effects, { do: "forget", timer: "retry" }, { do: "hang-up" }, tellRunner("cut"));
}

function hello(
  state: Connection,
  { boot, epoch }: { boot: string; epoch: number },
  { node, now }: Setting,
): Next<Connection> {
  const effects: (Effect | Message)[] = [];
  if (state.boot !== undefined && state.boot !== boot)
    effects.push({ do: "emit", event: { type: "node.rebooted", node } });
  // The node read its clock between `reachedAt` and `now`: a slow line or machine does not count as a wrong clock.
  const skew = Math.round(Math.max(state.reachedAt / 1000 - (epoch + 1), epoch - now / 1000));
  const text = `the clock of ${node} differs from this machine's by ${skew} s`;
  if (skew > 5) effects.push({ do: "emit", event: { type: "warning", node, text } });
  effects.push({ to: "queue", event: { type: "hello", boot } });
  return { state: { ...state, boot, unanswered: 0 }, effects };
}
