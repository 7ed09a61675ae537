import { formatLatency } from "#base/units.ts";
import type { FleetController, FleetPeer } from "../ink/fleet/snapshot.ts";
import type { Role } from "../ink/theme.ts";
import { ageColumn, countColumn, expiryColumn, type Column } from "./column.ts";

/** The figures of the replication between two controllers. */
type LinkFigures = {
  readonly [Figure in "inStep" | "behind" | "ahead" | "rttMs" | "clockOffsetMs"]?: FleetPeer[Figure] | undefined;
};

/** A controller, with its link as the asked controller sees it. */
export interface ControllerRow extends FleetController, LinkFigures {
  readonly link?: FleetPeer | undefined;
}

export const linkColumns: readonly Column<LinkFigures>[] = [
  {
    title: "IN-STEP",
    cell: ({ inStep }) => (inStep === undefined ? "-" : yesOrNo(inStep)),
    role: ({ inStep }) => (inStep === undefined ? "muted" : inStep ? "ok" : "warning"),
  },
  countColumn("TO-SEND", ({ behind }) => behind),
  countColumn("TO-GET", ({ ahead }) => ahead),
  { title: "RTT", cell: ({ rttMs }) => formatLatency(rttMs), role: "muted" },
  { title: "CLOCK", cell: ({ clockOffsetMs }) => formatLatency(clockOffsetMs), role: "muted" },
];

export const contactColumn: Column<Pick<FleetController, "state" | "lastContact">> = ageColumn(
  "CONTACT",
  ({ state, lastContact }) => (state === "self" ? "" : lastContact),
);

export const controllerColumns: readonly Column<ControllerRow>[] = [
  { title: "CONTROLLER", live: true, cell: controllerName },
  { title: "ID", cell: ({ controllerId }) => controllerId },
  { title: "ADDRESS", cell: ({ address }) => address },
  { title: "DC", cell: ({ dc }) => dc },
  { title: "STATE", cell: ({ state }) => state, role: ({ state }) => stateRole(state) },
  { title: "VERSION", cell: ({ version }) => version, role: "muted" },
  ageColumn("AGE", ({ registered }) => registered),
  contactColumn,
  ...linkColumns.map((column): Column<ControllerRow> => ({ ...column, live: true })),
  expiryColumn("CERT-EXPIRY", ({ certificateExpires }) => certificateExpires),
  expiryColumn("SUB-CA-EXPIRY", ({ subCa }) => subCa?.notAfter),
  { title: "ALARM", live: true, cell: (row) => alarmsOf(row)[0] ?? "", role: "warning" },
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

export function stateRole(state: string): Role {
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
