import { setPriority } from "node:os";
import type { RunModel } from "#engine/events/model.ts";
import type { RunFolder } from "#engine/run/run-folder.ts";
import { openRunView, type PlayerControls, type RunView } from "#tui/ink/open-run-view.ts";
import { detectTheme } from "#tui/ink/theme.ts";
import { guardTerminal } from "./terminal-guard.ts";
import { UsualDurations } from "./usual-durations.ts";
import type { RunControls } from "./watch-run.ts";

export interface LiveViewOptions extends RunControls {
  readonly folder: RunFolder;
  readonly since?: number;
  /** The run as it is known before its first event. */
  readonly before?: RunModel;
  readonly player?: PlayerControls;
}

/**
 * The Ink view of a run, over the whole terminal. Ink comes with this file, and this file is loaded only when it is
 * wanted, so that nobody else pays for it. Should this process be killed, the terminal is put right by another one.
 */
export async function openLiveView({ folder, player, ...options }: LiveViewOptions): Promise<RunView> {
  const said = player ? "" : `The view was killed; the run goes on: kcore runs attach ${folder.id}`;
  const guard = await guardTerminal(said);
  const usual = new UsualDurations(folder);
  // The terminal went away: writing and reading say so, and the hangup has made the view leave.
  const onGone = () => options.leave("detached");
  process.stdin.on("error", onGone);
  const view = await openRunView({
    stdin: process.stdin,
    stdout: process.stdout,
    theme: detectTheme(process.env, process.stdout),
    project: folder.project,
    usual: usual.durations,
    ...options,
    ...(player ? { player } : {}),
  });
  if (!player) stepBack();
  const reading = usual.read();
  return {
    draw: (event) => view.draw(event),
    replace: (model) => view.replace(model),
    close: async () => {
      usual.stop();
      await view.close();
      await guard.release();
      await reading;
      process.stdin.off("error", onGone);
    },
  };
}

/** How much less than the run the view counts where both want the same processor; what it needs it still gets. */
const NICE = 5;

/** The view must never delay its run, and with many nodes on a small bastion there is no processor to spare. */
function stepBack(): void {
  try {
    setPriority(NICE);
  } catch {
    // Then it runs as it is.
  }
}
