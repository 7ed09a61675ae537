import { formatDuration } from "#base/units.ts";
import { html, type Html } from "./html.ts";
import type { Lane } from "./work.ts";
import { badge, count, nodeLabel, stepLabel } from "./labels.ts";

export interface LaneDrawing {
  readonly bars: Html;
  readonly dryRun: boolean;
  /** A process is working on the run. */
  readonly isLive?: boolean;
  /** The node waits for the answer to its own question. */
  readonly asks?: boolean;
  /** Shown opened from the start. */
  readonly open?: boolean;
  /** The steps that the row opens to; without them the page's script loads them. */
  readonly body?: Html;
  /** The place of the steps among the packed bodies. */
  readonly packed?: number;
  /** A number that grows with the steps. */
  readonly news?: number;
}

/** The filters of rows. */
export const kinds = ["failed", "changed", "ok", "open"] as const;

/** Whether a row matches each filter. */
export function hasKind({ node, tally }: Lane): Readonly<Record<(typeof kinds)[number], boolean>> {
  const failed = tally.failed + tally.unreachable > 0;
  const changed = tally.changed + tally.wouldChange > 0;
  const open = node !== undefined && node.outcome !== "done" && !failed;
  return { failed, changed, open, ok: !failed && !changed && !open };
}

/** A row of the timeline: name, end, counts, bars and time; it opens to `body`. */
export function drawLane(
  lane: Lane,
  { bars, dryRun, isLive = false, asks = false, open = false, body, packed, news }: LaneDrawing,
): Html {
  const { id, name, node, tally, since } = lane;
  const has = hasKind(lane);
  const isForeseen = tally.wouldChange > 0 && tally.failed === 0;
  const told =
    isForeseen && (!node || node.outcome === "done")
      ? stepLabel("would-change")
      : node
        ? nodeLabel(node, isLive, asks)
        : stepLabel(tally.failed > 0 ? "failed" : tally.changed > 0 ? "changed" : "ok");
  const differs = dryRun ? tally.wouldChange : tally.changed;
  const counts = [
    count(tally.run, "step"),
    differs > 0 && `${differs} ${dryRun ? "would change" : "changed"}`,
    tally.failed > 0 && `${tally.failed} failed`,
    tally.unknown > 0 && `${tally.unknown} unknown`,
    tally.skipped > 0 && `${tally.skipped} skipped`,
  ].filter((part) => part !== false);
  return html`<details
    class="lane ${told.look}"
    id="${id}"
    data-name="${name}"
    data-kinds="${kinds.filter((kind) => has[kind]).join(" ")}"
    ${open && html` open`}${packed !== undefined && html` data-packed="${packed}"`}${news !== undefined && html` data-count="${news}"`}
  >
    <summary>
      <span class="name">${name}</span>${badge(told)}<span class="counts">${counts.join(" · ")}</span
      ><span class="track">${bars}</span>${
        since === undefined
          ? html`<span class="time">${formatDuration(tally.time)}</span>`
          : html`<span class="time" data-since="${since}"></span>`
      }
    </summary>
    <div class="body">${body}</div>
  </details> `;
}
