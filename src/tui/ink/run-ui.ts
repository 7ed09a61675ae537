import type { NodeRow, Rank } from "../node-row.ts";
import type { Filter } from "../row-order.ts";
import type { WorkItem } from "../work-item.ts";

/** What the user made of the view: plain values, never changed in place. */
export interface RunUi {
  /** All nodes, or the steps of one. */
  readonly pane: "nodes" | "node";
  /** The node somebody moved to; without one the first row counts as selected. */
  readonly selected?: { readonly name: string; readonly rank: Rank };
  readonly listTop: number;
  readonly filter: Filter;
  readonly search: string;
  /** Characters go into the search field. */
  readonly searching: boolean;
  /** The step somebody moved to; without one the item that tells most. */
  readonly step?: string;
  readonly stepTop: number;
  readonly bodyTop: number;
  /** The newest output stays in sight while the step runs. */
  readonly follow: boolean;
  readonly overlay?: "help" | "stages" | "warnings";
  readonly overlayTop: number;
  /** What is typed for the question of that id. */
  readonly answer: { readonly id: string; readonly typed: string };
  /** Questions answered here whose answer the run has not yet confirmed. */
  readonly sent: ReadonlySet<string>;
  /** The open question was put aside for now. */
  readonly aside: boolean;
  /** The choice after a Ctrl-C is open. */
  readonly stopping: boolean;
  /** A line for a moment; `until` on the real clock. */
  readonly toast?: { readonly text: string; readonly role: "ok" | "warning"; readonly until: number };
}

/**
 * The same with what the frame showed as selected: what a key means must not depend on an event that nobody has seen yet.
 */
export function holdSeen(ui: RunUi, seen: { readonly row?: NodeRow; readonly item?: WorkItem }): RunUi {
  const { row, item } = seen;
  return {
    ...ui,
    ...(ui.selected === undefined && row ? { selected: { name: row.name, rank: row.rank } } : {}),
    ...(ui.step === undefined && ui.pane === "node" && item ? { step: item.key } : {}),
  };
}

/** Lets go of what was only held for a key that did not choose anything; what is being read stays. */
export function releaseSeen(ui: RunUi, before: RunUi, held: RunUi): RunUi {
  const { selected, step, ...rest } = ui;
  return {
    ...rest,
    ...(selected && (before.selected || selected !== held.selected) ? { selected } : {}),
    ...(step !== undefined && (before.step !== undefined || step !== held.step || !ui.follow) ? { step } : {}),
  };
}

export const freshUi: RunUi = {
  pane: "nodes",
  listTop: 0,
  filter: "all",
  search: "",
  searching: false,
  stepTop: 0,
  bodyTop: 0,
  follow: true,
  overlayTop: 0,
  answer: { id: "", typed: "" },
  sent: new Set(),
  aside: false,
  stopping: false,
};
