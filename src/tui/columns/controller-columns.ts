import { formatLatency } from "#base/units.ts";
import type { FleetController, FleetPeer } from "../ink/fleet/snapshot.ts";
import type { ColumnRoom } from "../ink/table.ts";
import type { TextRole } from "../ink/theme.ts";
import { ageColumn, countColumn, expiryColumn, type Column } from "./column.ts";

/** The figures of the replication between two controllers. */
type LinkFigures = {
  readonly [Figure in "inStep" | "behind" | "ahead" | "rttMs" | "clockOffsetMs"]?: FleetPeer[Figure] | undefined;
};

/** A controller, with its link as the controller that answered sees it. */
export interface ControllerRow extends FleetController, LinkFigures {
  readonly link?: FleetPeer | undefined;
}

export const linkColumns: readonly Column<LinkFigures>[] = [
  {
    title: "IN-STEP",
    cell: ({ inStep }) => (inStep === undefined ? "-" : yesOrNo(inStep)),
    role: ({ inStep }) => (inStep === undefined ? "muted" : inStep ? "ok" : "warning"),
    room: { short: "STEP", width: 4, drop: 1 },
  },
  countColumn("TO-SEND", ({ behind }) => behind, { short: "SEND", width: 5, drop: 2 }),
  countColumn("TO-GET", ({ ahead }) => ahead, { short: "GET", width: 5, drop: 2 }),
  latencyColumn("RTT", ({ rttMs }) => rttMs, { width: 6, drop: 5 }),
  latencyColumn("CLOCK", ({ clockOffsetMs }) => clockOffsetMs, { width: 7, drop: 7 }),
];

function latencyColumn(
  title: string,
  ms: (link: LinkFigures) => number | undefined,
  room: ColumnRoom,
): Column<LinkFigures> {
  return { title, cell: (link) => formatLatency(ms(link)), role: "muted", room: { ...room, align: "right" } };
}

/** The age of the last contact; empty for the controller that answered. */
export const contactColumn: Column<Pick<FleetController, "state" | "lastContact">> = ageColumn(
  "CONTACT",
  ({ state, lastContact }) => (state === "self" ? "" : lastContact),
  { room: { short: "SEEN", width: 5, drop: 6 } },
);

export const controllerColumns: readonly Column<ControllerRow>[] = [
  { title: "CONTROLLER", live: true, cell: controllerName, room: { width: 16, grow: 1, max: 36, drop: 0 } },
  { title: "ID", cell: ({ controllerId }) => controllerId },
  { title: "ADDRESS", cell: ({ address }) => address },
  { title: "DC", cell: ({ dc }) => dc, room: { width: 5, grow: 1, max: 14, drop: 4 } },
  {
    title: "STATE",
    cell: ({ state }) => state,
    role: ({ state }) => controllerStateRole(state),
    room: { width: 10, drop: 0 },
  },
  { title: "VERSION", cell: ({ version }) => version, role: "muted", room: { width: 8, grow: 1, max: 16, drop: 10 } },
  ageColumn("AGE", ({ registered }) => registered),
  contactColumn,
  ...linkColumns.map((column): Column<ControllerRow> => ({ ...column, live: true })),
  expiryColumn("CERT-EXPIRY", ({ certificateExpires }) => certificateExpires, { short: "CERT", width: 7, drop: 8 }),
  expiryColumn("SUB-CA-EXPIRY", ({ subCa }) => subCa?.notAfter, { short: "SUB-CA", width: 7, drop: 9 }),
  {
    title: "ALARM",
    live: true,
    cell: (row) => alarmsOf(row)[0] ?? "",
    role: "warning",
    room: { width: 14, grow: 4, drop: 3 },
  },
  {
    title: "MANUAL-APPROVAL",
    wide: true,
    cell: ({ requireManualApproval: isManual }) => (isManual === undefined ? "" : yesOrNo(isManual)),
  },
  { title: "SUB-CA", wide: true, cell: ({ subCa }) => subCa?.serial ?? "" },
  { title: "KEY", wide: true, cell: ({ key }) => key },
];

/** The controller's name for operators: its address. */
export function controllerName({ address, controllerId }: Pick<FleetController, "address" | "controllerId">): string {
  return address || controllerId;
}

export function controllerStateRole(state: string): TextRole {
  if (state === "self" || state === "connected") return "ok";
  return state === "down" || state === "refused" ? "failed" : "warning";
}

/** The alarms of a controller, the worst first. */
export function alarmsOf({ replication, silent, link }: ControllerRow): readonly string[] {
  return [
    ...(replication?.readOnly === undefined ? [] : [`writes are refused: ${replication.readOnly}`]),
    ...(replication?.alarms ?? []).map(({ code, message }) => `${message} [${code}]`),
    ...(replication?.problems ?? []),
    ...(silent === undefined ? [] : [silent]),
    ...(link && !link.inStep && link.reason !== undefined ? [link.reason] : []),
  ];
}

function yesOrNo(value: boolean): string {
  return value ? "yes" : "no";
}
