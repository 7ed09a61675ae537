import { readFile } from "node:fs/promises";
import { parseEvent } from "#engine/events/recording.ts";
import { RunFold } from "#engine/events/reduce.ts";
import { runFolder } from "#engine/run/run-folder.ts";
import { LiveParts } from "#web/live-parts.ts";
import { RunParts } from "#web/run-parts.ts";
import { recordBigRun } from "./big-recording.ts";
import { median } from "./pseudo-terminal.ts";

/** Milliseconds of the run between two pictures, as kcore web makes them (run-feed.ts). */
const PICTURE = 250;

/**
 * The work of kcore web for a large run that is watched while it goes on. For each picture it reads the new events,
 * draws the page's parts, and writes the changes for the page. Nothing waits in between; a page is opened when the run
 * has begun, and another one at its end.
 */
export async function measureWeb(project: string, { nodes = 1000, steps = 30, seconds = 30 } = {}) {
  const id = "20261121-060000-feed";
  await recordBigRun({ project, id, nodes, steps, length: seconds * 1000 });
  const lines = (await readFile(runFolder(project, id).events, "utf8")).trimEnd().split("\n");
  const [fold, parts, live] = [new RunFold(), new RunParts(), new LiveParts()];
  const openPage = (): number => {
    const from = performance.now();
    live.show(parts.draw(fold.model, true));
    parts.drawPage(fold.model, { base: "/runs/x", isLive: true });
    return performance.now() - from;
  };
  let next = 0;
  const takeIn = (until: number): void => {
    for (; next < lines.length; next += 1) {
      const event = parseEvent(lines[next] ?? "");
      if (!event || event.at > until) return;
      fold.add(event);
    }
  };
  const start = parseEvent(lines[0] ?? "")?.at ?? 0;
  takeIn(start + 1);
  const first = openPage();
  const frames: number[] = [];
  let [known, bytes] = [live.version, 0];
  for (let until = start + PICTURE; next < lines.length; until += PICTURE) {
    const from = performance.now();
    takeIn(until);
    live.show(parts.draw(fold.model, true));
    const news = live.since(known);
    bytes += JSON.stringify(news.parts).length;
    known = news.version;
    frames.push(performance.now() - from);
  }
  const last = openPage();
  return {
    nodes,
    steps,
    frames,
    median: median(frames),
    worst: Math.max(...frames),
    rate: bytes / seconds,
    first,
    last,
  };
}
