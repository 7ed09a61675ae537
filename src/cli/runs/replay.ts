import type { RunEvent } from "#engine/events/event.ts";
import { maxSpeed, Player } from "#tui/player.ts";
import type { RunDrawing } from "#tui/plain.ts";
import { realTimers } from "#base/timers.ts";
import { exitCodes } from "#errors/problem.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { viewFromFlags, type ViewFlags } from "../terminal/choose-view.ts";
import { guardTerminal } from "../terminal/terminal-guard.ts";
import { printEnd } from "../watch/print-end.ts";
import { openLines } from "../watch/watch-run.ts";
import { readRun, type KnownRun } from "../records/known-run.ts";

export interface ReplayFlags extends CommonFlags, ViewFlags {
  readonly speed: number;
}

/** `kcore runs replay`: shows a recorded run at its own pace or another speed, live on a terminal. */
export async function replayRun(id: string, { project, speed, ...flags }: ReplayFlags): Promise<void> {
  const run = await readRun(findProject(project), id);
  const { output, style } = viewFromFlags(flags);
  if (output === "ink") await playLive(run, speed);
  else await playLines(run, speed, await openLines(output, { style }));
  await printEnd(run.model, { output, style, folder: run.folder });
}

/** Plays until the operator leaves the view, which stays open at the run's end. */
async function playLive({ folder, events }: KnownRun, speed: number): Promise<void> {
  const guard = guardTerminal("");
  const { openLiveView } = await import("../watch/live-view.ts");
  const player = new Player({ events, speed: Math.min(speed, maxSpeed), clock: realTimers });
  const closed = Promise.withResolvers<void>();
  const controls = { send: () => undefined, leave: () => closed.resolve() };
  const onGone = () => closed.resolve();
  process.stdout.on("error", onGone);
  const view = await openLiveView({ folder, player, guard, ...controls });
  try {
    player.start(view);
    await closed.promise;
  } finally {
    player.close();
    await view.close();
    process.stdout.off("error", onGone);
  }
}

/** Plays the run to its end, or until SIGINT or a closed output. */
async function playLines({ events }: KnownRun, speed: number, drawing: RunDrawing): Promise<void> {
  const player = new Player({ events, speed, clock: realTimers });
  const ended = Promise.withResolvers<void>();
  const stop = () => {
    process.exitCode = exitCodes.interrupted;
    ended.resolve();
  };
  player.subscribe(() => {
    if (player.state().ended) ended.resolve();
  });
  process.once("SIGINT", stop);
  process.stdout.once("error", () => ended.resolve());
  try {
    player.start({ draw: (event: RunEvent) => drawing.draw(event), replace: () => undefined });
    await ended.promise;
  } finally {
    player.close();
    process.off("SIGINT", stop);
  }
}
