import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import { renderToString } from "ink";
import { createElement as h } from "react";
import { Lines } from "#tui/ink/lines.ts";
import { fleetScene, rollout, smallFleet, typeFleetKeys, type FleetOptions } from "#support/fleet.ts";
import { asciiTheme, colourTheme, plainTheme } from "#support/scenes.ts";

const file = join(import.meta.dirname, "../../../../fixtures/frames/fleet.txt");
/** `UPDATE_FRAMES=1 npx mocha test/unit/tui/ink/fleet/fleet-frames.test.ts` writes them anew: look at the difference. */
const isUpdating = process.env["UPDATE_FRAMES"] === "1";

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
  "80x24, nodes, ASCII": { theme: asciiTheme },
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
  "80x24, no update": { keys: ["6"] },
  "160x20, updates": { columns: 160, rows: 20, snapshot: updating, keys: ["6"] },
  "80x24, help": { keys: ["?"] },
  "80x24, an empty cluster": { snapshot: empty },
  "60x15, nodes": { columns: 60, rows: 15 },
  "60x15, a controller is lost": { columns: 60, rows: 15, link: lost },
  "60x15, controllers, ASCII": { columns: 60, rows: 15, theme: asciiTheme, keys: ["3"] },
  "160x20, nodes": { columns: 160, rows: 20 },
  "160x20, controllers": { columns: 160, rows: 20, keys: ["3"] },
};

/** The frame as ink lays it out; escape characters are written so that a difference can be read. */
function frame(title: string): string {
  const { keys = [], ...options } = variants[title] ?? {};
  const { columns = 80, theme = plainTheme } = options;
  const { lines } = fleetScene({ ...options, ui: typeFleetKeys(keys, options) });
  const drawn = renderToString(h(Lines, { lines, width: columns, theme }), { columns });
  return (theme.depth > 0 ? drawn.replaceAll("\u001b", "␛") : stripVTControlCharacters(drawn))
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

function readFrames(): ReadonlyMap<string, string> {
  const text = isUpdating ? "" : readFileSync(file, "utf8");
  return new Map(
    text
      .split(/^=== /m)
      .slice(1)
      .map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1, -1)]),
  );
}

describe("the frames of the dashboard", () => {
  const known = readFrames();
  const drawn = new Map<string, string>();
  for (const title of Object.keys(variants))
    it(`are as they were looked at: ${title}`, () => {
      drawn.set(title, frame(title));
      if (!isUpdating) expect(drawn.get(title)).to.equal(known.get(title));
    });
  after(() => {
    if (isUpdating) writeFileSync(file, [...drawn].map(([title, text]) => `=== ${title}\n${text}\n`).join(""));
  });
});
