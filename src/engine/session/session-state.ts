import { connectionAfter } from "./connection.ts";
import { noConnection, type Connection } from "./connection-state.ts";
import type { Effect, Message, Setting } from "./session-events.ts";
import { queueAfter } from "./queue.ts";
import { emptyQueue, type Queue } from "./queue-state.ts";
import { runnerAfter } from "./runner.ts";
import { noRunner, type Runner } from "./runner-state.ts";

/** A session's state: three machines that know each other only by what they tell each other. */
export interface Machines {
  readonly connection: Connection;
  readonly runner: Runner;
  readonly queue: Queue;
}

export const atFirst: Machines = { connection: noConnection, runner: noRunner, queue: emptyQueue };

/** What a message makes of the machines, everything included that they tell each other about it. */
export function machinesAfter(
  before: Machines,
  message: Message,
  setting: Setting,
): { readonly state: Machines; readonly effects: readonly Effect[] } {
  let state = before;
  const effects: Effect[] = [];
  const messages: Message[] = [message];
  for (let told = messages.shift(); told; told = messages.shift()) {
    const { machine, effects: made } = after(state, told, setting);
    state = { ...state, ...machine };
    for (const one of made) {
      if ("to" in one) messages.push(one);
      else effects.push(one);
    }
  }
  return { state, effects };
}

function after(state: Machines, told: Message, setting: Setting) {
  switch (told.to) {
    case "connection": {
      const { state: connection, effects } = connectionAfter(state.connection, told.event, setting);
      return { machine: { connection }, effects };
    }
    case "runner": {
      const { state: runner, effects } = runnerAfter(state.runner, told.event, setting);
      return { machine: { runner }, effects };
    }
    case "queue": {
      const { state: queue, effects } = queueAfter(state.queue, told.event, setting);
      return { machine: { queue }, effects };
    }
  }
}
