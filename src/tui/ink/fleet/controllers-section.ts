import { formatLatency } from "#base/units.ts";
import { coarseSince } from "../../columns/column.ts";
import { concernOfExpiry, type Concern } from "../../columns/concern.ts";
import {
  alarmsOf,
  controllerColumns,
  controllerName,
  controllerStateRole,
  type ControllerRow,
} from "../../columns/controller-columns.ts";
import { expiryFact } from "./cells.ts";
import type { DetailFact, Section } from "./section.ts";
import type { FleetController, FleetPeer, FleetSnapshot } from "./snapshot.ts";

/** The concern of a controller, by its own report and by the report of the controller that answered. */
export function concernOfController(controller: ControllerRow, now: number): Concern {
  const { state, replication, link, certificateExpires, subCa } = controller;
  const expiries = [concernOfExpiry(certificateExpires, now), concernOfExpiry(subCa?.notAfter, now)];
  if (state === "down" || state === "refused" || replication?.readOnly !== undefined || expiries.includes(0)) return 0;
  const isInStep = (state === "self" || state === "connected") && link?.inStep !== false;
  const isWell = replication ? replication.healthy && replication.alarms.length === 0 : true;
  return isInStep && isWell && controller.silent === undefined && !expiries.includes(1) ? 2 : 1;
}

/** All controllers, with their links as the controller that answered sees them. */
export function controllerRows({ controllers }: FleetSnapshot): readonly ControllerRow[] {
  const asked = controllers.find(({ state }) => state === "self");
  const links = new Map(asked?.replication?.peers.map((peer) => [peer.controllerId, peer]));
  return controllers.map((controller) => {
    const link = links.get(controller.controllerId);
    const inStep = controller.state === "self" ? controller.replication?.healthy : link?.inStep;
    return { ...link, ...controller, inStep, link };
  });
}

export const controllersSection: Section<ControllerRow> = {
  name: "controllers",
  title: "controllers",
  emptyText: "no controllers",
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
  columns: controllerColumns,
  open: (row, _snapshot, { theme, now }) => {
    const { replication, link, subCa, state } = row;
    return {
      title: controllerName(row),
      facts: [
        ["state", state === "self" ? "answers this view" : state, controllerStateRole(state)],
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

function lagText({ inStep, behind, ahead, rttMs, clockOffsetMs, reason }: FleetPeer): string {
  const counts = `${behind} to send, ${ahead} to get, RTT ${formatLatency(rttMs)}, clock ${formatLatency(clockOffsetMs)}`;
  return `${inStep ? "in step" : "not in step"}, ${counts}${reason === undefined ? "" : `, ${reason}`}`;
}

function contentText({ registers, tombstones, quarantined }: NonNullable<FleetController["replication"]>): string {
  return `${registers} registers, ${tombstones} tombstones, ${quarantined} quarantined`;
}

function peerFact(peer: FleetPeer, now: number): DetailFact {
  const heard = `${peer.address}: ${lagText(peer)}, heard ${coarseSince(peer.lastContact, now)} ago`;
  return [peer.state, heard, peer.inStep ? "plain" : "warning"];
}
