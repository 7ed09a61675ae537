import { formatLatency } from "#base/units.ts";
import { span, type Line } from "../text.ts";
import type { Role } from "../theme.ts";
import { coarseSince, concernMark, concernOfExpiry, countCell, expiryCell, expiryFact, sinceCell } from "./cells.ts";
import type { Concern, Fact, Section } from "./section.ts";
import type { FleetController, FleetPeer, FleetSnapshot } from "./snapshot.ts";

/** A controller, with its link as the asked controller sees it. */
export interface ControllerRow extends FleetController {
  readonly link?: FleetPeer;
}

/** The concern of a controller, by its own report and by that of the asked controller. */
export function concernOfController(controller: ControllerRow, now: number): Concern {
  const { state, replication, link, certificateExpires, subCa } = controller;
  const expiries = [concernOfExpiry(certificateExpires, now), concernOfExpiry(subCa?.notAfter, now)];
  if (state === "down" || state === "refused" || replication?.readOnly !== undefined || expiries.includes(0)) return 0;
  const isAsItShould = (state === "self" || state === "connected") && link?.inStep !== false;
  const isWell = replication ? replication.healthy && replication.alarms.length === 0 : true;
  return isAsItShould && isWell && controller.silent === undefined && !expiries.includes(1) ? 2 : 1;
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

export function controllerRows({ controllers }: FleetSnapshot): readonly ControllerRow[] {
  const asked = controllers.find(({ state }) => state === "self");
  const links = new Map(asked?.replication?.peers.map((peer) => [peer.controllerId, peer]));
  return controllers.map((controller) => {
    const link = links.get(controller.controllerId);
    return link ? { ...controller, link } : controller;
  });
}

/** The controller's name for operators: its address. */
export function controllerName({ address, controllerId }: FleetController): string {
  return address === "" ? controllerId : address;
}

function stateRole(state: string): Role {
  if (state === "self" || state === "connected") return "ok";
  return state === "down" || state === "refused" ? "failed" : "warning";
}

function inStepCell({ link, replication, state }: ControllerRow): Line {
  const inStep = state === "self" ? replication?.healthy : link?.inStep;
  if (inStep === undefined) return [span("-", "muted")];
  return [inStep ? span("yes", "ok") : span("no", "warning")];
}

export const controllersSection: Section<ControllerRow> = {
  name: "controllers",
  title: "controllers",
  none: "no controllers",
  rows: controllerRows,
  key: ({ controllerId }) => controllerId,
  dc: ({ dc }) => dc,
  text: (row) => [row.controllerId, row.address, row.dc, row.version, row.state, ...alarmsOf(row)].join(" "),
  concern: concernOfController,
  orders: [
    { name: "address", by: ({ dc, address }) => `${dc} ${address}` },
    { name: "state", by: ({ state }) => state },
    { name: "lag", by: ({ link }) => -((link?.behind ?? 0) + (link?.ahead ?? 0)) },
    { name: "version", by: ({ version }) => version },
  ],
  columns: ({ theme, now }) => [
    { title: "", width: 1, drop: 0, cell: (row) => [concernMark(concernOfController(row, now), theme)] },
    { title: "CONTROLLER", width: 16, grow: 1, max: 36, drop: 0, cell: (row) => [span(controllerName(row))] },
    {
      title: "STATE",
      width: 10,
      drop: 0,
      cell: ({ state }) => [span(state === "self" ? "answering" : state, stateRole(state))],
    },
    { title: "STEP", width: 4, drop: 1, cell: inStepCell },
    { title: "DC", width: 5, grow: 1, max: 14, drop: 4, cell: ({ dc }) => [span(dc)] },
    { title: "SEND", width: 5, align: "right", drop: 2, cell: ({ link }) => (link ? countCell(link.behind) : dash()) },
    { title: "GET", width: 5, align: "right", drop: 2, cell: ({ link }) => (link ? countCell(link.ahead) : dash()) },
    {
      title: "RTT",
      width: 6,
      align: "right",
      drop: 5,
      cell: ({ link }) => [span(formatLatency(link?.rttMs), "muted")],
    },
    {
      title: "CLOCK",
      width: 7,
      align: "right",
      drop: 7,
      cell: ({ link }) => [span(formatLatency(link?.clockOffsetMs), "muted")],
    },
    {
      title: "SEEN",
      width: 5,
      align: "right",
      drop: 6,
      cell: ({ lastContact, state }) => (state === "self" ? dash() : sinceCell(lastContact, now)),
    },
    {
      title: "CERT",
      width: 7,
      align: "right",
      drop: 8,
      cell: ({ certificateExpires }) => expiryCell(certificateExpires, now),
    },
    { title: "SUB-CA", width: 7, align: "right", drop: 9, cell: ({ subCa }) => expiryCell(subCa?.notAfter, now) },
    { title: "VERSION", width: 8, grow: 1, max: 16, drop: 10, cell: ({ version }) => [span(version, "muted")] },
    { title: "ALARM", width: 14, grow: 4, drop: 3, cell: (row) => [span(alarmsOf(row)[0] ?? "", "warning")] },
  ],
  open: (row, _snapshot, { theme, now }) => {
    const { replication, link, subCa, state } = row;
    return {
      title: controllerName(row),
      facts: [
        ["state", state === "self" ? "it tells all this" : state, stateRole(state)],
        ["id", row.controllerId],
        ["address", row.address],
        ["datacenter", row.dc],
        ["version", row.version],
        ...(link ? [["lag", lagText(link), link.inStep ? "plain" : "warning"] as const] : []),
        ["registered", row.registered],
        expiryFact("certificate", row.certificateExpires, now),
        expiryFact("sub-CA", subCa?.notAfter, now, `${subCa?.serial}, `),
        ...(replication ? [["holds", contentText(replication)] as const] : []),
      ],
      groups: [
        ["alarms", alarmsOf(row).map((alarm) => [theme.glyphs.warning, alarm, "warning"] as const)],
        ["how it sees the others", (replication?.peers ?? []).map((peer) => peerFact(peer, now))],
      ],
    };
  },
  command: ({ address }) => `kcore${address === "" ? "" : ` -s ${address}`} get replication-status`,
};

function dash(): Line {
  return [span("-", "muted")];
}

function lagText({ inStep, behind, ahead, rttMs, clockOffsetMs, reason }: FleetPeer): string {
  const counts = `${behind} to send, ${ahead} to get, RTT ${formatLatency(rttMs)}, clock ${formatLatency(clockOffsetMs)}`;
  return `${inStep ? "in step" : "not in step"}, ${counts}${reason === undefined ? "" : `, ${reason}`}`;
}

function contentText({ registers, tombstones, quarantined }: NonNullable<FleetController["replication"]>): string {
  return `${registers} registers, ${tombstones} tombstones, ${quarantined} quarantined`;
}

function peerFact(peer: FleetPeer, now: number): Fact {
  const heard = `${peer.address}: ${lagText(peer)}, heard ${coarseSince(peer.lastContact, now)} ago`;
  return [peer.state, heard, peer.inStep ? "plain" : "warning"];
}
