import { connectionTransition, noConnection, type Connection } from "./connection.ts";
import type { SessionEffect, SessionEvent, TransitionContext } from "./session-events.ts";
import { emptyQueue, queueTransition, type Queue } from "./queue.ts";
import { runnerTransition } from "./runner.ts";
import { noRunner, type Runner } from "./runner-state.ts";

/** A session's state: three state machines, which only exchange events. */
export interface SessionState {
  readonly connection: Connection;
  readonly runner: Runner;
  readonly queue: Queue;
}

export const initialState: SessionState = { connection: noConnection, runner: noRunner, queue: emptyQueue };

/** The session's state after an event, and after all events that the state machines send each other because of the event. */
export function transition(
  before: SessionState,
  first: SessionEvent,
  context: TransitionContext,
): { readonly state: SessionState; readonly effects: readonly SessionEffect[] } {
  let state = before;
  const effects: SessionEffect[] = [];
  const events: SessionEvent[] = [first];
  for (let event = events.shift(); event; event = events.shift()) {
    const { machine, effects: made } = transitionMachine(state, event, context);
    state = { ...state, ...machine };
    for (const one of made) {
      if ("to" in one) events.push(one);
      else effects.push(one);
    }
  }
  return { state, effects };
}

function transitionMachine(state: SessionState, { to, event }: SessionEvent, context: TransitionContext) {
  switch (to) {
    case "connection": {
      const { state: connection, effects } = connectionTransition(state.connection, event, context);
      return { machine: { connection }, effects };
    }
    case "runner": {
      const { state: runner, effects } = runnerTransition(state.runner, event, context);
      return { machine: { runner }, effects };
    }
    case "queue": {
      const { state: queue, effects } = queueTransition(state.queue, event, context);
      return { machine: { queue }, effects };
    }
  }
}
