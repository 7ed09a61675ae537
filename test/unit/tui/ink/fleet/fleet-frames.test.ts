import { createElement as h } from "react";
import { Lines } from "#tui/ink/screen.ts";
import { fleetScene, rollout, smallFleet, typeFleetKeys, type FleetOptions } from "#support/fleet.ts";
import { describeFrames } from "#support/frames.ts";
import { plainTheme } from "#support/scenes.ts";

const updating = {
  ...smallFleet(),
  updates: [rollout(), rollout({ name: "fresh", phase: "pending", waits: "approval", nodes: [] })],
};
const page = ["enter"];

const variants: Readonly<Record<string, FleetOptions & { readonly keys?: readonly string[] }>> = {
  "80x24, nodes": {},
  "80x24, a node": { keys: page },
  "80x18, datacenters": { rows: 18, keys: ["2"] },
  "80x18, controllers": { rows: 18, keys: ["3"] },
  "80x24, a controller": { keys: ["3", ...page] },
  "80x18, certificates": { rows: 18, keys: ["4"] },
  "80x18, a conflict": { rows: 18, keys: ["5", ...page] },
  "80x18, an update": { rows: 18, snapshot: updating, keys: ["6", ...page] },
  "60x15, nodes": { columns: 60, rows: 15 },
  "160x20, nodes": { columns: 160, rows: 20 },
};

describe("the frames of the dashboard", () => {
  describeFrames("fleet", Object.keys(variants), (title) => {
    const { keys = [], ...options } = variants[title] ?? {};
    const { columns = 80 } = options;
    const { lines } = fleetScene({ ...options, ui: typeFleetKeys(keys, options) });
    return { element: h(Lines, { lines, width: columns, theme: plainTheme }), columns, isColoured: false };
  });
});
