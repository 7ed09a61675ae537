import { to } from "./advance.ts";
import { wait, type Decision } from "./decision.ts";
import { whyAsked } from "./hooks.ts";
import type { Progress, Row } from "./records.ts";
import { isDownBy, unavailableOf, whyNotStart, whyNotStartAny, whyUnconfirmed, whyUntaken } from "./starts.ts";
import { isActive, isWished, nameOf, reportOf, type RolloutView } from "./view.ts";
import { illnessOf } from "./well.ts";

/**
 * Starts what may be started of the first group that is not done: first to prepare, then, when that is done and it still may, to be taken
 * down.
 */
export function startMore(view: RolloutView, progress: Progress, rows: ReadonlyMap<string, Row>): Decision {
  const isLeft = (id: string): boolean => rows.has(id) && rows.get(id)?.phase !== "succeeded";
  const at = progress.waves.findIndex((wave) => wave.some(isLeft));
  if (progress.canaries > 0 && at >= progress.canaries && progress.promoted !== true) return soak(view, progress);
  const why = whyNotStartAny(view);
  const starts = new Map<string, Row>();
  const reasons = new Set<string>();
  const unavailable = unavailableOf(view, rows);
  for (const id of progress.waves[at] ?? []) {
    const row = rows.get(id);
    if (row?.phase === "preflight") reasons.add(whyUnconfirmed(view, id));
    const busy = row && isActive(row) ? (whyUntaken(view, id) ?? whyAsked(view, id, row)) : undefined;
    if (busy !== undefined) reasons.add(busy);
    if (row?.phase !== "pending" && row?.phase !== "prepared") continue;
    const reason = why ?? whyNotStart(view, id, { rows, starts, unavailable }) ?? whyNotApproved(view, id, row);
    if (reason === undefined) {
      const next = started(view, id, row);
      starts.set(id, next);
      if (isDownBy(next)) unavailable.add(id);
    } else reasons.add(reason);
  }
  if (starts.size === 0) return wait(progress, [...reasons]);
  const { waits: _, ...going } = progress;
  const fresh = [...starts.keys()].filter((id) => !progress.started.includes(id));
  return { progress: { ...going, started: [...progress.started, ...fresh] }, rows: starts };
}

function started(view: RolloutView, id: string, row: Row): Row {
  if (row.phase === "prepared") return to(view, row, view.spec.drain.enabled ? "draining" : "activating");
  const from = row.from ?? reportOf(view, id)?.present;
  return { ...to(view, row, "preparing"), ...(from ? { from } : {}) };
}

/** What nobody knew before it was built: such a node waits for a person. */
function whyNotApproved(view: RolloutView, id: string, { phase }: Row): string | undefined {
  const { spec, isApproved } = view;
  if (phase !== "prepared" || spec.approvalPolicy !== "auto-non-disruptive" || isApproved) return undefined;
  if (reportOf(view, id)?.needsReboot === true) return `approval: ${nameOf(view, id)} has to reboot`;
  return spec.drain.enabled ? `approval: ${nameOf(view, id)} has to be drained` : undefined;
}

/** The canaries are done; the rest waits until somebody, or their time, lets it begin. */
function soak(view: RolloutView, progress: Progress): Decision {
  const { now, spec } = view;
  const promoted: Decision = { progress: { ...progress, promoted: true }, rows: new Map() };
  if (isWished(view, "promote")) return promoted;
  const { soakSeconds } = spec.strategy.canary ?? {};
  const canaries = progress.waves.slice(0, progress.canaries).flat();
  const ill = canaries.flatMap((id) => whyIll(view, id));
  // It may have been removed since it died of the update: who knows that is a person.
  const gone = canaries.filter((id) => !view.nodes.has(id));
  if (soakSeconds === undefined) return wait(progress, ["promotion"]);
  if (gone.length > 0)
    return wait(progress, [`promotion alone: the canary ${gone.join(", ")} is no node of this cluster any more`]);
  if (progress.soakSince === undefined) return { progress: { ...progress, soakSince: now }, rows: new Map() };
  // Time alone says nothing: a canary that is dead has not shown that it lives.
  if (now - progress.soakSince >= soakSeconds * 1000 && ill.length === 0) return promoted;
  const time = `${soakSeconds} s since ${new Date(progress.soakSince).toISOString()}`;
  return wait(progress, [`promotion, or ${[time, ...ill].join(" and ")}`]);
}

function whyIll(view: RolloutView, id: string): readonly string[] {
  const illness = illnessOf(view, id);
  return illness === undefined ? [] : [`${nameOf(view, id)}, which ${illness}`];
}
