import { runTime, type RunModel } from "#engine/events/run-model.ts";
import { nodeRows } from "../node-row.ts";
import { tellTimeLeft, timeLeft } from "../time-left.ts";
import type { SceneProps } from "./scene.ts";
import { span, type Line } from "./text.ts";

export interface RunProgressProps extends Pick<SceneProps, "model" | "theme" | "now" | "paces"> {
  readonly width: number;
  /** Whether a question is open, for an unknown time. */
  readonly isAsking?: boolean;
}

/** The progress of a running run as a bar, and the time left if earlier runs allow an estimate. */
export function runProgress(props: RunProgressProps): Line {
  const { model, theme, width } = props;
  if (model.state !== "running" && model.state !== "stopping") return [];
  const share = shareOf(model);
  if (share === undefined) return [];
  const cells = width >= 100 ? 20 : 10;
  const done = Math.floor(share * cells);
  const left = leftOf(props);
  return [
    span(theme.glyphs.barDone.repeat(done), "running"),
    span(theme.glyphs.barLeft.repeat(cells - done), "muted"),
    span(` ${Math.floor(share * 100)} %`, "strong"),
    ...(left === undefined ? [] : [span(`  ${left}`, "muted")]),
  ];
}

/** “about 40 s left”, if earlier runs allow an estimate. */
export function leftOf({ model, now, paces, isAsking = false }: RunProgressProps): string | undefined {
  if (model.state !== "running" || isAsking || !paces || paces.length === 0) return undefined;
  const ended = nodeRows(model).reduce((sum, row) => sum + row.ended, 0);
  const left = timeLeft(paces, { nodes: model.nodes.size, ended, elapsed: runTime(model, now) });
  return left === undefined ? undefined : tellTimeLeft(left);
}

/** The share of the run, with equal weight for each node; undefined without nodes. */
function shareOf(model: RunModel): number | undefined {
  let [sum, nodes] = [0, 0];
  for (const { isBastion, progress } of nodeRows(model)) {
    if (isBastion) continue;
    nodes += 1;
    sum += progress;
  }
  return nodes === 0 ? undefined : sum / nodes;
}
