import { stripVTControlCharacters } from "node:util";
import { pressFleetKey } from "#tui/ink/fleet/fleet-keys.ts";
import { arrangeFleet, type FleetScene, type FleetSceneProps } from "#tui/ink/fleet/fleet-scene.ts";
import { freshFleetUi, type FleetUi } from "#tui/ink/fleet/fleet-ui.ts";
import type { FleetController, FleetNode, FleetPeer, FleetSnapshot, FleetUpdate } from "#tui/ink/fleet/snapshot.ts";
import { paintLine } from "#tui/ink/text.ts";
import { plainTheme } from "./scenes.ts";

/** The present time of the tests' fleet. */
export const fleetNow = Date.parse("2026-11-21T12:00:00Z");

/** ISO 8601, so many seconds before that time, or after it if negative. */
export function ago(seconds: number): string {
  return new Date(fleetNow - seconds * 1000).toISOString();
}

const day = 86_400;

export function fleetNode(index: number, changes: Partial<FleetNode> = {}): FleetNode {
  return {
    id: `6f1c2a52-7c1e-4f0e-9a50-${String(index).padStart(12, "0")}`,
    hostname: `n${index}`,
    address: `192.0.2.${index % 250}`,
    dc: index % 3 === 0 ? "DC2" : "DC1",
    roles: ["worker"],
    labels: { tier: index % 2 === 0 ? "hdd" : "ssd" },
    taints: [],
    key: "",
    cpu: 8,
    memory: 16 * 2 ** 30,
    version: "0.1.0",
    approval: "approved",
    status: "ready",
    registered: ago(30 * day),
    lastSeen: ago(7),
    usage: { load: index / 2, memoryUsed: index * 2 ** 30, diskUsed: index * 9 * 10 ** 9, diskSize: 10 ** 11 },
    trend: { load: [0, 0.3, 0.5, 0.8, 1, index / 16], memory: [0.1, index / 16] },
    certificateExpires: ago(-60 * day),
    conflicts: 0,
    ...changes,
  };
}

const ids = ["aaaaaaaa", "bbbbbbbb", "cccccccc"].map((start) => `${start}-7c1e-4f0e-9a50-0d8a3b0f4e11`);

function controller(index: number, changes: Partial<FleetController> = {}): FleetController {
  const controllerId = ids[index] ?? "";
  return {
    controllerId,
    dc: index === 2 ? "DC2" : "DC1",
    address: `192.0.2.${index + 1}:9090`,
    version: "0.1.0",
    state: index === 0 ? "self" : "connected",
    registered: ago(30 * day),
    lastContact: index === 0 ? "" : ago(1),
    certificateExpires: ago(-80 * day),
    subCa: { serial: `5ub${index}`, notAfter: ago(-900 * day) },
    key: "",
    ...changes,
  };
}

/** Three controllers in two datacenters, one of them behind; nodes of every kind; a certificate and two conflicts. */
export function smallFleet(): FleetSnapshot {
  const nodes = [
    ...[1, 2, 3, 10].map((index) => fleetNode(index, index < 3 ? { roles: ["controller", "worker"] } : {})),
    fleetNode(4, { status: "not-ready", reason: `no heartbeat since ${ago(94)}`, lastSeen: ago(94) }),
    fleetNode(5, { status: "pending", approval: "pending" }),
    fleetNode(6, { conflicts: 1 }),
    fleetNode(7, { certificateExpires: ago(-5 * day) }),
    fleetNode(8, { status: "rejected", approval: "rejected" }),
    fleetNode(9, {
      status: "unknown",
      approval: "pending",
      version: "",
      usage: undefined,
      trend: undefined,
      lastSeen: "",
      registered: "",
      certificateExpires: "",
    }),
  ];
  const peer = (index: number, changes: Partial<FleetPeer> = {}): FleetPeer => ({
    controllerId: ids[index] ?? "",
    address: `192.0.2.${index + 1}:9090`,
    state: "connected",
    inStep: true,
    behind: 0,
    ahead: 0,
    rttMs: 1.4,
    clockOffsetMs: -0.3,
    lastContact: ago(1),
    ...changes,
  });
  const lags = { inStep: false, behind: 12, reason: "it has not acknowledged 12 transactions", rttMs: 81 };
  return {
    context: "prod",
    at: fleetNow - 1000,
    asked: "192.0.2.1:9090",
    nodes,
    controllers: [
      controller(0, {
        replication: {
          healthy: false,
          problems: ["192.0.2.3:9090 is not in step"],
          registers: 340,
          tombstones: 3,
          quarantined: 0,
          alarms: [],
          peers: [peer(1), peer(2, lags)],
        },
      }),
      controller(1),
      controller(2, { silent: "192.0.2.3:9090 gave no answer within 3 s" }),
    ],
    certificates: nodes
      .filter(({ certificateExpires }) => certificateExpires !== "")
      .flatMap(({ id, certificateExpires }, index) => [
        {
          serial: `0${index}a`,
          spki: "",
          role: "node",
          id,
          issuer: "prod sub-CA",
          issued: ago(80 * day),
          notAfter: ago(-1 * day),
          status: "active",
          current: false,
        } as const,
        {
          serial: `0${index}b`,
          spki: "",
          role: "node",
          id,
          issuer: "prod sub-CA",
          issued: ago(30 * day),
          notAfter: certificateExpires,
          status: "active",
          current: true,
        } as const,
      ]),
    conflicts: [
      {
        id: "c0ff1c7",
        key: `node/${fleetNode(6).id}/label/tier`,
        kind: "edit",
        at: ago(600),
        winner: { value: `"ssd"`, origin: "192.0.2.1:9090", at: ago(600) },
        loser: { value: `"hdd"`, origin: "192.0.2.3:9090", at: ago(610) },
      },
      {
        id: "name:twin",
        key: "twin",
        kind: "name",
        at: "",
        winner: { value: fleetNode(1).id, origin: "", at: "" },
        loser: { value: fleetNode(2).id, origin: "", at: "" },
      },
    ],
    updates: [],
  };
}

/** A rollout over nodes of two datacenters: one done, one under way, one failed, the rest to come. */
export function rollout(changes: Partial<FleetUpdate> = {}): FleetUpdate {
  const phases = ["succeeded", "failed", "activating", "pending"];
  return {
    name: "release-0-4-0",
    generation: 2,
    phase: "rolling_out",
    target: "kcore 0.4.0",
    waits: "n3, which is not interrupted",
    since: ago(95),
    owner: { name: "192.0.2.1:9090", heard: true },
    nodes: phases.map((phase, index) => ({
      id: fleetNode(index + 1).id,
      hostname: `n${index + 1}`,
      dc: index < 2 ? "DC1" : "DC2",
      phase,
      since: ago(30),
      ...(phase === "failed" && { trouble: "gate: web does not answer" }),
    })),
    ...changes,
  };
}

export interface FleetOptions extends Partial<FleetSceneProps> {
  readonly columns?: number;
  readonly rows?: number;
}

/** The lines and colours of the dashboard. */
export function fleetScene({ columns = 80, rows = 24, ...props }: FleetOptions = {}): FleetScene {
  return arrangeFleet({
    snapshot: smallFleet(),
    link: { state: "live", endpoint: "192.0.2.1:9090" },
    ui: freshFleetUi,
    theme: plainTheme,
    now: fleetNow,
    size: { columns, rows },
    ...props,
  });
}

/** The dashboard's lines. */
export function fleetLines(options: FleetOptions = {}): readonly string[] {
  const { columns = 80, theme = plainTheme } = options;
  return fleetScene(options).lines.map((line) => stripVTControlCharacters(paintLine(line, columns, theme)).trimEnd());
}

/** The dashboard's state after these keys: names as `KeyPress` has them, other texts are typed. */
export function typeFleetKeys(keys: readonly string[], options: FleetOptions = {}): FleetUi {
  return keys.reduce<FleetUi>((ui, name) => {
    const text = name === "space" ? " " : name.length === 1 ? name : "";
    return pressFleetKey(fleetScene({ ...options, ui }), { name, text }).ui;
  }, options.ui ?? freshFleetUi);
}
