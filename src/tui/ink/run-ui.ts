import type { Rank } from "../node-row.ts";
import type { Filter, Sort } from "../row-order.ts";
import type { ScreenEffect } from "./keys.ts";

/** An operator's settings of the view: plain values, never changed in place. */
export interface RunUi {
  /** All nodes, or the steps of one node. */
  readonly pane: "nodes" | "node";
  /** The node that a key moved to; absent: `rowToShow` of panes.ts selects. */
  readonly selected?: { readonly name: string; readonly rank: Rank };
  readonly listTop: number;
  readonly filter: Filter;
  readonly search: string;
  readonly sort: Sort;
  /** Characters go into the search field. */
  readonly searching: boolean;
  /** The key of the step that an operator moved to; absent: the most important item (`mostImportant`). */
  readonly step?: string;
  readonly stepTop: number;
  readonly bodyTop: number;
  /** The newest output stays in sight while the step runs. */
  readonly follow: boolean;
  /** The step's texts fill the whole terminal. */
  readonly full: boolean;
  /** Long lines of output continue in the next row. */
  readonly wrap: boolean;
  /**
   * After a change of wrapping: the share of all rows, 0 to 1, above the visible ones; counts until their number is known.
   */
  readonly bodyShare?: number | undefined;
  readonly find: Find;
  readonly overlay?: "help" | "stages" | "warnings" | "foresight";
  readonly overlayTop: number;
  /** The answer as typed so far, for the question of that id. */
  readonly answer: { readonly id: string; readonly typed: string };
  /** Ids of the questions that were answered in this view. */
  readonly sent: ReadonlySet<string>;
  /** The operator has put the open question aside for now. */
  readonly aside: boolean;
  /** The run has ended, and the view stays open. */
  readonly resting: boolean;
  /** The choice after a Ctrl-C is open. */
  readonly stopping: boolean;
  /** The question whether to resume the run is open. */
  readonly resuming: boolean;
  /** A message for a short time; `until`: milliseconds since the epoch on the real clock. */
  readonly toast?: { readonly text: string; readonly role: "ok" | "warning"; readonly until: number };
}

/** A search in a step's texts. */
export interface Find {
  /** Empty: no search. */
  readonly text: string;
  /** The next search, as typed so far. */
  readonly typed?: string;
  /** The present match: its row in the body. */
  readonly row?: number;
  /** The view jumps to the first match once the matches are known. */
  readonly isNew?: true;
}

export const freshUi: RunUi = {
  pane: "nodes",
  listTop: 0,
  filter: "all",
  search: "",
  sort: "state",
  searching: false,
  stepTop: 0,
  bodyTop: 0,
  follow: true,
  full: false,
  wrap: true,
  find: { text: "" },
  overlayTop: 0,
  answer: { id: "", typed: "" },
  sent: new Set(),
  aside: false,
  resting: false,
  stopping: false,
  resuming: false,
};

/** An effect of a key beyond the view itself. */
export type RunEffect =
  | ScreenEffect
  | { readonly type: "interrupt" }
  | { readonly type: "abort" }
  | { readonly type: "leave"; readonly why: "left" | "detached" }
  | { readonly type: "resume" }
  | { readonly type: "answer"; readonly id: string; readonly value: string }
  | { readonly type: "say"; readonly text: string }
  | { readonly type: "toggle" }
  | { readonly type: "seek"; readonly by: number }
  | { readonly type: "step"; readonly direction: 1 | -1 }
  | { readonly type: "speed"; readonly factor: number };

/** The settings after a key, and the key's effect. */
export interface KeyResult {
  readonly ui: RunUi;
  readonly effect?: RunEffect;
}
