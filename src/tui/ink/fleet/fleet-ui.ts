export const sectionNames = ["nodes", "dcs", "controllers", "certificates", "conflicts", "updates"] as const;
export type SectionName = (typeof sectionNames)[number];

/** The selection, scroll position and order of one section. */
export interface SectionState {
  /** The key of the row that the operator selected; if absent, the first row counts as selected. */
  readonly key?: string;
  readonly top: number;
  /** The number of the rows' order: 0 by concern, then the section's own orders. */
  readonly sort: number;
  readonly reversed: boolean;
}

/** An operator's settings of the dashboard: plain values, never changed in place. */
export interface FleetUi {
  readonly section: SectionName;
  readonly states: Readonly<Record<SectionName, SectionState>>;
  /** Only rows that hold each of these words. */
  readonly search: string;
  /** Characters go into the search field. */
  readonly searching: boolean;
  /** Only rows that need an operator. */
  readonly trouble: boolean;
  /** Only rows of this datacenter. */
  readonly dc?: string;
  /** The selected row's details are open. */
  readonly isOpen: boolean;
  /** The first line shown of the open details or of the help. */
  readonly bodyTop: number;
  readonly help: boolean;
  /** A message for a short time; `until`: milliseconds since the epoch. */
  readonly toast?: { readonly text: string; readonly role: "ok" | "warning"; readonly until: number };
}

const start: SectionState = { top: 0, sort: 0, reversed: false };

export const freshFleetUi: FleetUi = {
  section: "nodes",
  states: { nodes: start, dcs: start, controllers: start, certificates: start, conflicts: start, updates: start },
  search: "",
  searching: false,
  trouble: false,
  isOpen: false,
  bodyTop: 0,
  help: false,
};
