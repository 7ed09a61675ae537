import { firstRow } from "./adopt.ts";
import type { Decision } from "./decision.ts";
import type { Progress } from "./records.ts";
import { wavesOf } from "./select.ts";
import { mayComeTo } from "./starts.ts";
import { isBack, type RolloutNode, type RolloutView } from "./view.ts";

/** The nodes that may run the target by an earlier generation of this update, and could be taken back from it: by their last word, whoever heard it. */
export function broughtBefore(view: RolloutView): readonly RolloutNode[] {
  return [...view.nodes.values()].filter(({ id }) => {
    const [row, report] = [view.rows.get(id), view.reports.get(id)];
    if (row?.generation === view.generation) return false;
    if (report?.present.id === view.target.id) return report.previous !== undefined;
    if (!row || row.untouched === true) return false;
    return report ? mayComeTo(row, report) : row.phase !== "pending" && !isBack(row);
  });
}

/**
 * A rollback of a generation that never began takes up what earlier ones brought: each node is asked first what it runs. Undefined: there is
 * nothing of the kind. In which order these were started is not known any more: it is taken for the one in which they would be now.
 */
export function takeUp(view: RolloutView, progress: Progress): Decision | undefined {
  const brought = progress.waves.length > 0 ? [] : broughtBefore(view);
  if (brought.length === 0) return undefined;
  const waves = wavesOf(brought, view.spec, view.self).waves.map((wave) => [...wave]);
  return {
    progress: { ...progress, waves, started: waves.flat() },
    rows: new Map(waves.flat().map((id) => [id, firstRow(view, id, "preflight")])),
  };
}
