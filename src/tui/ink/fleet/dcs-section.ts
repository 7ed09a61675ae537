import { countColumn } from "../../columns/column.ts";
import type { Concern } from "../../columns/concern.ts";
import { concernOfController } from "./controllers-section.ts";
import { concernOfNode } from "./nodes-section.ts";
import type { Section } from "./section.ts";
import type { FleetController, FleetNode, FleetSnapshot } from "./snapshot.ts";

/** A datacenter with its nodes and controllers. */
interface Datacenter {
  readonly name: string;
  readonly nodes: readonly FleetNode[];
  readonly controllers: readonly FleetController[];
}

function datacenters({ nodes, controllers }: FleetSnapshot): readonly Datacenter[] {
  const all = new Map<string, { nodes: FleetNode[]; controllers: FleetController[] }>();
  const at = (name: string) => {
    const known = all.get(name) ?? { nodes: [], controllers: [] };
    all.set(name, known);
    return known;
  };
  for (const node of nodes) at(node.dc).nodes.push(node);
  for (const controller of controllers) at(controller.dc).controllers.push(controller);
  return [...all].map(([name, content]) => ({ name, ...content }));
}

function countNodes({ nodes }: Datacenter, ...wanted: readonly FleetNode["status"][]): number {
  return nodes.filter(({ status }) => wanted.includes(status)).length;
}

function answering({ controllers }: Datacenter): number {
  return controllers.filter(({ state }) => state === "self" || state === "connected").length;
}

function concernOf({ nodes, controllers }: Datacenter, at: number): Concern {
  const all = [
    ...nodes.map((node) => concernOfNode(node, at)),
    ...controllers.map((one) => concernOfController(one, at)),
  ];
  return all.includes(0) ? 0 : all.includes(1) ? 1 : 2;
}

export const dcsSection: Section<Datacenter> = {
  name: "dcs",
  title: "DCs",
  emptyText: "no datacenters yet",
  rows: datacenters,
  key: ({ name }) => name,
  dc: ({ name }) => name,
  text: ({ name }) => name,
  concern: concernOf,
  orders: [
    { name: "name", by: ({ name }) => name },
    { name: "nodes", by: ({ nodes }) => -nodes.length },
    { name: "not ready", by: (dc) => -countNodes(dc, "not-ready") },
  ],
  columns: [
    { title: "DC", cell: ({ name }) => name, room: { width: 10, grow: 1, max: 36, drop: 0 } },
    { title: "NODES", cell: ({ nodes }) => String(nodes.length), room: { width: 6, align: "right", drop: 0 } },
    { title: "READY", cell: (dc) => String(countNodes(dc, "ready")), room: { width: 6, align: "right", drop: 0 } },
    countColumn("NOTREADY", (dc) => countNodes(dc, "not-ready"), { width: 8, drop: 1 }),
    countColumn("PENDING", (dc) => countNodes(dc, "pending"), { width: 7, drop: 2 }),
    {
      title: "OTHER",
      cell: (dc) => String(countNodes(dc, "rejected", "unknown")),
      room: { width: 5, align: "right", drop: 4 },
    },
    {
      title: "CONTROLLERS",
      cell: (dc) => (dc.controllers.length === 0 ? "0" : `${answering(dc)}/${dc.controllers.length}`),
      role: (dc) => (answering(dc) < dc.controllers.length ? "failed" : "plain"),
      room: { width: 11, align: "right", drop: 3 },
    },
  ],
  open: (dc) => ({
    title: dc.name,
    facts: [
      ["nodes", String(dc.nodes.length)],
      ["controllers", String(dc.controllers.length)],
    ],
    groups: [
      ["controllers", dc.controllers.map(({ address, controllerId, state }) => [state, `${address} ${controllerId}`])],
    ],
  }),
  command: ({ name }) => `kcore get nodes --dc ${name}`,
};
