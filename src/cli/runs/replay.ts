import type { RunEvent } from "#engine/events/event.ts";
import { maxSpeed, Player } from "#tui/player.ts";
import type { RunDrawing } from "#tui/plain.ts";
import { realTimers } from "#base/timers.ts";
import { exitCodes } from "#errors/problem.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { viewOf, type ViewFlags } from "../terminal/choose-view.ts";
import { guardTerminal } from "../terminal/terminal-guard.ts";
import { drawEnd } from "../watch/draw-end.ts";
import { openLines } from "../watch/watch-run.ts";
import { readRun, type KnownRun } from "../records/known-run.ts";

export interface ReplayFlags extends CommonFlags, ViewFlags {
  readonly speed: number;
}

/** `kcore runs replay`: a recorded run at its own pace, live where there is a terminal. */
export async function replayRun(id: string, { project, speed, ...flags }: ReplayFlags): Promise<void> {
  const run = await readRun(findProject(project), id);
  const { output, style } = viewOf(flags);
  if (output === "ink") await playLive(run, speed);
  else await playLines(run, speed, await openLines(output, { style }));
  await drawEnd(run.model, { output, style, folder: run.folder });
}

/** Plays until the user leaves: at its end the view stays open to look around and go back. */
async function playLive({ folder, events }: KnownRun, speed: number): Promise<void> {
  const guard = guardTerminal("");
  const { openLiveView } = await import("../watch/live-view.ts");
  const player = new Player({ events, speed: Math.min(speed, maxSpeed), clock: realTimers });
  const left = Promise.withResolvers<void>();
  const controls = { send: () => undefined, leave: () => left.resolve() };
  const onGone = () => left.resolve();
  process.stdout.on("error", onGone);
  const view = await openLiveView({ folder, player, guard, ...controls });
  try {
    player.start(view);
    await left.promise;
  } finally {
    player.close();
    await view.close();
    process.stdout.off("error", onGone);
  }
}

/** To the end, or until a signal. */
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
