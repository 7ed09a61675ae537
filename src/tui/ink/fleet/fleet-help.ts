import type { KeyHelp } from "../keys.ts";
import type { Glyphs } from "../theme.ts";
import type { FleetUi } from "./fleet-ui.ts";

/** The keys that do something now, the most important first; the same as in the run view. */
export function fleetKeys({ isOpen }: Pick<FleetUi, "isOpen">, glyphs: Glyphs): readonly KeyHelp[] {
  const shared: readonly KeyHelp[] = [
    { keys: "?", short: "help", long: "this help" },
    { keys: "q", short: "leave", long: "leave (also Ctrl-C)" },
  ];
  const rest: readonly KeyHelp[] = [
    { keys: "c", short: "copy", long: "copy the command that comes next: approve, look at its agent, what tells more" },
    { keys: "Ctrl-Z", long: "suspend this view; fg comes back" },
    { keys: "Ctrl-L", long: "draw everything again" },
  ];
  if (isOpen)
    return [
      { keys: glyphs.upDown, short: "scroll", long: "scroll (also j, k, PgUp, PgDn)" },
      { keys: "Esc", short: "back", long: "back to the list (also h, Backspace)" },
      ...shared,
      { keys: "n p", short: "next", long: "the next or the previous one" },
      ...rest,
    ];
  return [
    { keys: glyphs.upDown, short: "move", long: "to another row (also j, k)" },
    { keys: glyphs.enter, short: "open", long: "all that is known of it; a DC: its nodes (also l)" },
    ...shared,
    { keys: "Tab", short: "section", long: "the next section; Shift-Tab the one before; 1 to 6 that one" },
    { keys: "/", short: "search", long: "only rows that hold these words" },
    { keys: "f", short: "trouble", long: "only what needs attention; again: all" },
    { keys: "s", short: "sort", long: "order by the next column; S turns the order round" },
    { keys: "a", long: "all rows again: no filter, no search (also Esc)" },
    { keys: "PgUp PgDn", long: "a page up or down" },
    { keys: "g G", long: "to the first or the last" },
    ...rest,
  ];
}
