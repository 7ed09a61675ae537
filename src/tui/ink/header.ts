import { basename } from "node:path";
import { shortDuration } from "#base/units.ts";
import { runTime, type RunModel } from "#engine/events/run-model.ts";
import { dryRunTotal } from "../dry-run-plan.ts";
import { runningMark } from "./marks.ts";
import type { SceneProps } from "./scene.ts";
import { joinFitting, justify, lineWidth, span, type Line, type Span } from "./text.ts";
import type { Theme } from "./theme.ts";
import { formatTimeLeft, timeLeft } from "../time-left.ts";
import { nodeRows } from "../node-row.ts";

export interface HeaderProps extends Pick<SceneProps, "model" | "theme" | "now" | "project" | "player" | "paces"> {
  readonly width: number;
  /** One line, else two lines; then the banner of a dry run has a line of its own. */
  readonly compact: boolean;
  /** A question is open. */
  readonly isAsking?: boolean;
}

/** The run's title, nodes, time and progress; its id, revision and operator; and a banner for a dry run. */
export function headerLines(props: HeaderProps): readonly Line[] {
  const { model, theme, width, compact } = props;
  const { glyphs } = theme;
  const estimate = compact && width >= 56 ? timeLeftText(props) : undefined;
  const left = width < 70 ? estimate?.replace("about ", "~") : estimate;
  const state = [...(left === undefined ? [] : [span(`${left}  `, "muted")]), ...stateSpans(props), span(" ")];
  const first = justify([span(" "), ...titleSpans(props, lineWidth(state))], state, width, glyphs);
  if (compact) return [first];
  const dryRun: Line = [span(bannerText(model, width), "banner")];
  return [...(model.dryRun ? [dryRun] : []), first, idsLine(props)];
}

function bannerText(model: RunModel, width: number): string {
  const result = model.state === "finished" ? `: ${dryRunTotal(model)}` : ". This is what would happen.";
  return ` DRY RUN   Nothing ${model.state === "finished" ? "was" : "will be"} changed${result}`
    .padEnd(width)
    .slice(0, width);
}

function titleSpans({ model, compact, width, theme }: HeaderProps, stateWidth: number): readonly Span[] {
  const names = [...model.nodes.keys()];
  const badge = model.dryRun && compact ? [span(" DRY RUN ", "banner"), span(" ")] : [];
  const title = [...badge, span(model.title || "kcore", "title")];
  if (names.length === 0) return title;
  const count = names.length === 1 ? "" : `${names.length} nodes`;
  const room = width - lineWidth(title) - Math.max(24, stateWidth + 6);
  const listed = fitNames(names, room - (count === "" ? 4 : count.length + 6), theme);
  const on = [count, listed].filter((text) => text !== "").join(": ");
  return [...title, ...(model.resumed ? [span(" resumed", "muted")] : []), span("  on ", "muted"), span(on)];
}

/** As many names as fit, and an ellipsis for the others; empty without room for the first name. */
function fitNames(names: readonly string[], room: number, { glyphs }: Theme): string {
  let text = "";
  for (const [index, name] of names.entries()) {
    const next = text === "" ? name : `${text}, ${name}`;
    const left = names.length - index - 1;
    if (next.length + (left > 0 ? 4 : 0) > room) return text === "" ? "" : `${text}, ${glyphs.ellipsis}`;
    text = next;
  }
  return text;
}

/** The run's state as shape, word and colour, and its time. */
function stateSpans({ model, theme, now, player, width, isAsking = false }: HeaderProps): readonly Span[] {
  const { glyphs } = theme;
  const clock = [span("  "), span(shortDuration(runTime(model, now)), "strong")];
  const replay = player ? [span("replay", "accent"), span("  ")] : [];
  switch (model.state) {
    case "starting":
      return [...replay, span(`${runningMark(glyphs, now)} starting`, "running")];
    case "running":
      if (isAsking) return [span(`${glyphs.unknown} waiting for you`, "warning"), ...clock];
      return [...replay, span(`${runningMark(glyphs, now)} running`, "running"), ...clock];
    case "stopping": {
      const word = model.stopping?.how === "stop" ? "stopping" : "aborting";
      const by = model.stopping === undefined || width < 80 ? [] : [span(` by ${model.stopping.by}`, "muted")];
      return [...replay, span(`${glyphs.warning} ${word}`, "warning"), ...by, ...clock];
    }
    case "finished":
      return [...replay, ...outcomeSpans(model, theme), ...clock];
  }
}

function outcomeSpans({ outcome }: RunModel, { glyphs }: Theme): readonly Span[] {
  if (outcome === "done") return [span(`${glyphs.ok} done`, "ok")];
  if (outcome === "interrupted") return [span(`${glyphs.interrupted} interrupted`, "warning")];
  return [span(`${glyphs.failed} ${outcome === "unreachable" ? "nodes unreachable" : "failed"}`, "failed")];
}

function idsLine(props: HeaderProps): Line {
  const { model, theme, project, width } = props;
  const { glyphs } = theme;
  const progress = runProgress(props);
  const room = progress.length === 0 ? width : width - lineWidth(progress) - 3;
  const revision =
    model.revision === undefined
      ? []
      : [
          span(`git ${model.revision.slice(0, width < 100 ? 8 : 12)}`, "muted"),
          ...(model.dirty ? [span(width < 100 ? " + uncommitted" : " + uncommitted changes", "warning")] : []),
        ];
  const parts: Line[] = [
    [span(model.runId === "" ? "" : `run ${model.runId}`, "muted")],
    revision,
    [span(model.who === "" ? "" : `by ${model.who}`, "muted")],
    [span(basename(project), "muted")],
  ].filter((part) => lineWidth(part) > 0);
  const line = joinFitting(parts, `  ${glyphs.dot}  `, room);
  return progress.length === 0 ? line : justify(line, [...progress, span(" ")], width, glyphs);
}

export interface RunProgressProps extends Pick<SceneProps, "model" | "theme" | "now" | "paces"> {
  readonly width: number;
  /** A question is open: the time until its answer cannot be estimated. */
  readonly isAsking?: boolean;
}

/** The progress of a running run as a bar, with the time left if earlier runs allow an estimate; empty for any other run. */
export function runProgress(props: RunProgressProps): Line {
  const { model, theme, width } = props;
  if (model.state !== "running" && model.state !== "stopping") return [];
  const share = runShare(model);
  if (share === undefined) return [];
  const cells = width >= 100 ? 20 : 10;
  const done = Math.floor(share * cells);
  const left = timeLeftText(props);
  return [
    span(theme.glyphs.barDone.repeat(done), "running"),
    span(theme.glyphs.barLeft.repeat(cells - done), "muted"),
    span(` ${Math.floor(share * 100)} %`, "strong"),
    ...(left === undefined ? [] : [span(`  ${left}`, "muted")]),
  ];
}

/** “about 40 s left”; undefined without an estimate from earlier runs, while a question is open, and unless the run is running. */
export function timeLeftText({ model, now, paces, isAsking = false }: RunProgressProps): string | undefined {
  if (model.state !== "running" || isAsking || !paces || paces.length === 0) return undefined;
  const ended = nodeRows(model).reduce((sum, row) => sum + row.ended, 0);
  const left = timeLeft(paces, { nodes: model.nodes.size, ended, elapsed: runTime(model, now) });
  return left === undefined ? undefined : formatTimeLeft(left);
}

/** The done share of the run, 0 to 1, with equal weight for each node; undefined without nodes. */
function runShare(model: RunModel): number | undefined {
  let [sum, nodes] = [0, 0];
  for (const { isBastion, progress } of nodeRows(model)) {
    if (isBastion) continue;
    nodes += 1;
    sum += progress;
  }
  return nodes === 0 ? undefined : sum / nodes;
}
