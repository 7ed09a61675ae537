import { FleetView, type FleetViewOptions } from "#tui/ink/fleet/open-fleet-view.ts";
import { detectTheme } from "#tui/ink/theme.ts";
import { guardTerminal } from "../terminal/terminal-guard.ts";

/**
 * The dashboard over the whole terminal. With it comes ink, so this file is loaded only when it is wanted. Should this
 * process be killed, the terminal is put right by another one.
 */
export async function openFleetScreen(
  options: Pick<FleetViewOptions, "snapshot" | "leave" | "openNode">,
): Promise<Pick<FleetView, "show" | "tell" | "close">> {
  const guard = await guardTerminal("The view was killed: kcore top opens it again");
  // The terminal went away: the hangup has made the view leave.
  const onGone = () => options.leave();
  process.stdin.on("error", onGone);
  const theme = detectTheme(process.env, process.stdout);
  const view = new FleetView({ stdin: process.stdin, stdout: process.stdout, theme, ...options });
  return {
    show: (snapshot) => view.show(snapshot),
    tell: (link) => view.tell(link),
    close: async () => {
      await view.close();
      await guard.release();
      process.stdin.off("error", onGone);
    },
  };
}
