import { setPriority } from "node:os";
import type { RunControl } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import type { RunFolder } from "#engine/run/run-folder.ts";
import { RunView } from "#tui/ink/run-view.ts";
import { detectTheme } from "#tui/ink/theme.ts";
import type { PlayerControls } from "#tui/player.ts";
import type { TerminalGuard } from "../terminal/terminal-guard.ts";
import type { DryRunResult } from "#tui/questions.ts";
import { lastDryRun } from "./last-dry-run.ts";
import { readEarlierRuns } from "./earlier-runs.ts";
import { open, type FileHandle } from "node:fs/promises";

/** The controls that a view has over its run. */
export interface RunControls {
  readonly send: (control: RunControl) => void;
  readonly leave: (why: "left" | "detached") => void;
}

export interface LiveViewOptions extends RunControls {
  readonly folder: RunFolder;
  readonly since?: number;
  /** The run's model before its first event. */
  readonly before?: RunModel;
  readonly player?: PlayerControls;
  /** Whether the operator has used the keys before. */
  readonly isUsed?: boolean;
  /** The terminal guard, started before ink is loaded, which takes a while. */
  readonly guard: Promise<TerminalGuard>;
}

/**
 * Opens the Ink view of a run over the whole terminal. This file loads ink, so it is itself loaded only when needed.
 */
export async function openLiveView({
  folder,
  player,
  guard,
  ...options
}: LiveViewOptions): Promise<Pick<RunView, "draw" | "replace" | "rest" | "close">> {
  // The guard has to know the terminal's modes before ink changes them.
  const { release } = await guard;
  const stop = new AbortController();
  const earlier = readEarlierRuns(folder, stop.signal);
  // Reading fails once the terminal is gone; the view leaves then, as at a hangup.
  const onGone = () => options.leave("detached");
  process.stdin.on("error", onGone);
  const record = recordReader(folder.events);
  let dryRun: DryRunResult | undefined;
  const view = new RunView({
    stdin: process.stdin,
    stdout: process.stdout,
    theme: detectTheme(process.env, process.stdout),
    project: folder.project,
    usual: earlier.durations,
    paces: earlier.paces,
    lastDryRun: () => dryRun,
    read: record.read,
    ...options,
    ...(player ? { player } : {}),
  });
  if (!player) lowerPriority();
  if (!player) void lastDryRun(folder).then((found) => (dryRun = found));
  return {
    draw: (event) => view.draw(event),
    replace: (model) => view.replace(model),
    rest: () => view.rest(),
    close: async () => {
      stop.abort();
      await view.close();
      await record.close();
      await release();
      await earlier.done;
      process.stdin.off("error", onGone);
    },
  };
}

const viewNiceness = 5;

/**
 * Lowers the view's priority below the run's. With many nodes a small bastion has no processor to spare, and a view must
 * not delay its run.
 */
function lowerPriority(): void {
  try {
    setPriority(viewNiceness);
  } catch {
    // The view keeps its priority.
  }
}

/** Reads bytes of a run's record; opens the file at the first read. */
function recordReader(path: string) {
  let opened: Promise<FileHandle> | undefined;
  return {
    read: async (at: number, length: number): Promise<Uint8Array> => {
      const { buffer, bytesRead } = await (
        await (opened ??= open(path, "r"))
      ).read(Buffer.allocUnsafe(length), 0, length, at);
      return buffer.subarray(0, bytesRead);
    },
    close: async (): Promise<void> => (await opened?.catch(() => undefined))?.close(),
  };
}
