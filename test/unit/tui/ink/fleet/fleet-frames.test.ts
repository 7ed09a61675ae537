import { createElement as h } from "react";
import { Lines } from "#tui/ink/lines.ts";
import { fleetScene, rollout, smallFleet, typeFleetKeys, type FleetOptions } from "#support/fleet.ts";
import { describeFrames } from "#support/frames.ts";
import { asciiTheme, colourTheme, plainTheme } from "#support/scenes.ts";

const lost = {
  state: "lost",
  endpoint: "192.0.2.1:9090",
  why: "controller 192.0.2.1:9090 cannot be reached",
  trying: "192.0.2.2:9090",
} as const;

const empty = { ...smallFleet(), nodes: [], controllers: [], certificates: [], conflicts: [] };
const updating = {
  ...smallFleet(),
  updates: [rollout(), rollout({ name: "fresh", phase: "pending", waits: "approval", nodes: [] })],
};
const page = ["enter"];

const variants: Readonly<Record<string, FleetOptions & { readonly keys?: readonly string[] }>> = {
  "80x24, nodes": {},
  "80x24, nodes in colour": { theme: colourTheme },
  "80x24, a node": { keys: page },
  "80x24, datacenters": { keys: ["2"] },
  "80x24, controllers": { keys: ["3"] },
  "80x24, a controller": { keys: ["3", ...page] },
  "80x24, certificates": { keys: ["4"] },
  "80x24, conflicts": { keys: ["5"] },
  "80x24, a conflict": { keys: ["5", ...page] },
  "80x24, a controller is lost": { link: lost },
  "80x24, searching": { keys: ["/", "s", "s", "d"] },
  "80x24, updates": { snapshot: updating, keys: ["6"] },
  "80x24, an update": { snapshot: updating, keys: ["6", ...page] },
  "80x24, help": { keys: ["?"] },
  "80x24, an empty cluster": { snapshot: empty },
  "60x15, nodes": { columns: 60, rows: 15 },
  "60x15, controllers, ASCII": { columns: 60, rows: 15, theme: asciiTheme, keys: ["3"] },
  "160x20, nodes": { columns: 160, rows: 20 },
  "160x20, controllers": { columns: 160, rows: 20, keys: ["3"] },
};

describe("the frames of the dashboard", () => {
  describeFrames("fleet", Object.keys(variants), (title) => {
    const { keys = [], ...options } = variants[title] ?? {};
    const { columns = 80, theme = plainTheme } = options;
    const { lines } = fleetScene({ ...options, ui: typeFleetKeys(keys, options) });
    return { element: h(Lines, { lines, width: columns, theme }), columns, isColoured: theme.depth > 0 };
  });
});
