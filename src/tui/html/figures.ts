import { formatDuration } from "#base/units.ts";
import { runTime, type RunModel } from "#engine/events/run-model.ts";
import { tallyOfRun } from "../tally.ts";
import { html, type Html, type HtmlValue } from "./html.ts";
import type { Lane } from "./work.ts";

/** The numbers of steps by outcome, and a bar of their shares; undefined for a run that did not begin. */
export function drawFigures(model: RunModel, tally = tallyOfRun(model), isLive = false): HtmlValue {
  if (model.runId === "") return undefined;
  const differs = tally.changed + tally.wouldChange;
  const figures = [
    ["ok", tally.succeeded - differs, "in order"],
    ["changed", differs, model.dryRun ? "would change" : "changed"],
    ["failed", tally.failed, "failed"],
    ["failed", tally.unreachable, "unreachable"],
    ["unknown", tally.unknown, "unknown"],
    ["cut", tally.interrupted, "interrupted"],
    ["running", tally.unfinished, isLive ? "running" : "not finished"],
    ["skipped", tally.skipped, "skipped"],
    ["skipped", tally.notStarted, "not started"],
  ] as const;
  const shown = figures.filter(([, number, word]) => number > 0 || word === "failed");
  const total = Math.max(
    1,
    figures.reduce((sum, [, number]) => sum + number, 0),
  );
  let at = 0;
  const shares = shown.map(([className, number]) => {
    const wide = (number / total) * 1000;
    const drawn = html`<rect class="${className}" x="${at.toFixed(1)}" y="0" width="${wide.toFixed(1)}" height="10" />`;
    at += wide;
    return drawn;
  });
  return html`<section class="figures" aria-labelledby="figures">
    <h2 id="figures">Steps</h2>
    <svg class="shares" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">${shares}</svg>
    <ul>
      ${[["", tally.run, "ran"] as const, ...shown].map(([className, number, word]) => html`<li class="${className === "failed" && number === 0 ? "" : className}"><b>${number.toLocaleString("en")}</b> <span>${word}</span></li>`)}
    </ul>
  </section>`;
}

const mostRows = 8;
const shortestMs = 1_000;

/** The longest steps over all nodes, which a faster run has to shorten first; undefined without a step of a second. */
export function drawSlowest(model: RunModel, lanes: readonly Lane[]): HtmlValue {
  const times = new Map<string, { readonly title: string; readonly kind: string; readonly all: [number, Lane][] }>();
  for (const lane of lanes)
    for (const { item, title, from, to } of lane.pieces) {
      if (to - from < shortestMs) continue;
      const kind = item.module;
      const key = `${kind} ${title}`;
      const known = times.get(key) ?? { title, kind, all: [] };
      known.all.push([to - from, lane]);
      times.set(key, known);
    }
  const rows = [...times.values()]
    .map(({ title, kind, all }) => ({ title, kind, sorted: all.toSorted(([a], [b]) => b - a) }))
    .toSorted((a, b) => (b.sorted[0]?.[0] ?? 0) - (a.sorted[0]?.[0] ?? 0))
    .slice(0, mostRows);
  if (rows.length === 0) return undefined;
  return html`<section class="slowest" aria-labelledby="slowest">
    <h2 id="slowest">Where the time went</h2>
    <table>
      <caption class="hidden">
        The steps that took longest
      </caption>
      <thead>
        <tr>
          <th scope="col">Step</th>
          <th scope="col" class="time">Longest</th>
          <th scope="col">On</th>
          <th scope="col" class="time">Median</th>
          <th scope="col" class="time">Nodes</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(({ title, kind, sorted }) => drawRow(title, kind, sorted))}
      </tbody>
    </table>
    <p class="gone">Steps that took a second or more; the run took ${formatDuration(runTime(model))}.</p>
  </section>`;
}

function drawRow(title: string, kind: string, sorted: readonly [number, Lane][]): Html {
  const [longest = 0, lane] = sorted[0] ?? [];
  const median = sorted[sorted.length >> 1]?.[0] ?? 0;
  return html`<tr>
    <th scope="row">${title} <small>${kind}</small></th>
    <td class="time">${formatDuration(longest)}</td>
    <td><a href="#${lane?.id}">${lane?.name}</a></td>
    <td class="time">${formatDuration(median)}</td>
    <td class="time">${sorted.length}</td>
  </tr>`;
}
