import { FleetView, type FleetViewOptions } from "#tui/ink/fleet/fleet-view.ts";
import { detectTheme } from "#tui/ink/theme.ts";
import { guardTerminal } from "../terminal/terminal-guard.ts";

/**
 * Opens the dashboard over the whole terminal. This file loads ink, so it is itself loaded only when needed. If this
 * process is killed, the terminal guard repairs the terminal.
 */
export async function openFleetScreen(
  options: Pick<FleetViewOptions, "snapshot" | "leave" | "openNode">,
): Promise<Pick<FleetView, "show" | "showLink" | "close">> {
  const guard = await guardTerminal("The view was killed: kcore top opens it again");
  // Reading fails once the terminal is gone; the view leaves then, as at a hangup.
  const onGone = () => options.leave();
  process.stdin.on("error", onGone);
  const theme = detectTheme(process.env, process.stdout);
  const view = new FleetView({ stdin: process.stdin, stdout: process.stdout, theme, ...options });
  return {
    show: (snapshot) => view.show(snapshot),
    showLink: (link) => view.showLink(link),
    close: async () => {
      await view.close();
      await guard.release();
      process.stdin.off("error", onGone);
    },
  };
}
