import type { Rank } from "../node-row.ts";
import type { Filter, Sort } from "../row-order.ts";

/** What the user made of the view: plain values, never changed in place. */
export interface RunUi {
  /** All nodes, or the steps of one. */
  readonly pane: "nodes" | "node";
  /** The node somebody moved to; without one the first row counts as selected. */
  readonly selected?: { readonly name: string; readonly rank: Rank };
  readonly listTop: number;
  readonly filter: Filter;
  readonly search: string;
  readonly sort: Sort;
  /** Characters go into the search field. */
  readonly searching: boolean;
  /** The step somebody moved to; without one the item that tells most. */
  readonly step?: string;
  readonly stepTop: number;
  readonly bodyTop: number;
  /** The newest output stays in sight while the step runs. */
  readonly follow: boolean;
  /** What a step says has the whole terminal. */
  readonly full: boolean;
  /** Long lines of it go on in the next row. */
  readonly wrap: boolean;
  /** Rows are others than they were: it goes on at this share of all of them, 0 to 1, as soon as their number is known. */
  readonly bodyShare?: number | undefined;
  readonly find: Find;
  readonly overlay?: "help" | "stages" | "warnings" | "foresight";
  readonly overlayTop: number;
  /** What is typed for the question of that id. */
  readonly answer: { readonly id: string; readonly typed: string };
  /** Questions answered here whose answer the run has not yet confirmed. */
  readonly sent: ReadonlySet<string>;
  /** The open question was put aside for now. */
  readonly aside: boolean;
  /** The run has ended, and somebody still looks. */
  readonly resting: boolean;
  /** The choice after a Ctrl-C is open. */
  readonly stopping: boolean;
  /** The question whether to resume the run is open. */
  readonly resuming: boolean;
  /** A line for a moment; `until` on the real clock. */
  readonly toast?: { readonly text: string; readonly role: "ok" | "warning"; readonly until: number };
}

/** A search in what a step says. */
export interface Find {
  /** Empty: nothing is searched. */
  readonly text: string;
  /** What is being typed to be searched next. */
  readonly typed?: string;
  /** The match that somebody went to: its row in what scrolls. */
  readonly row?: number;
  /** As soon as the matches are known, the first one is gone to. */
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
