import { shortDuration } from "#base/units.ts";
import { causeFirst } from "../cause-line.ts";
import type { StageModel } from "#engine/events/run-model.ts";
import { stageMark } from "./marks.ts";
import type { SceneProps } from "./scene.ts";
import { justify, span, wrapParts, type Line, type Span } from "./text.ts";
import type { Theme } from "./theme.ts";

interface StagesProps extends Pick<SceneProps, "model" | "theme" | "now"> {
  readonly width: number;
}

/** Milliseconds that a stage took by `now`; undefined before it began. */
export function stageTime({ startedAt, endedAt }: StageModel, now: number): number | undefined {
  return startedAt === undefined ? undefined : (endedAt ?? now) - startedAt;
}

/** Stages side by side in at most `height` lines; else one line of shapes and the running stages, or the first failed one. */
export function stageStrip({ model, theme, width, now }: StagesProps, height: number): readonly Line[] {
  if (model.stages.length === 0 || height < 1) return [];
  const labels = model.stages.map((stage) => stageLabel(stage, theme, now));
  const lines = wrapParts(labels, { gap: 2, width: width - 1 });
  return lines.length <= height ? lines : [shortStrip({ model, theme, width, now })];
}

function stageLabel(stage: StageModel, { glyphs }: Theme, now: number): readonly Span[] {
  const time = stageTime(stage, now);
  const role = stage.state === "running" || stage.state === "failed" ? "strong" : "muted";
  return [
    stageMark(stage, glyphs, now),
    span(` ${stage.id}`, role),
    ...(time === undefined || stage.state === "skipped" ? [] : [span(` ${shortDuration(time)}`, "muted")]),
  ];
}

function shortStrip({ model: { stages }, theme: { glyphs }, now }: StagesProps): Line {
  const over = stages.filter(({ state }) => state !== "pending" && state !== "running").length;
  const running = stages.filter(({ state }) => state === "running");
  const named = running.length > 0 ? running : stages.filter(({ state }) => state === "failed").slice(0, 1);
  return [
    span(" "),
    ...stages.slice(0, 40).map((stage) => stageMark(stage, glyphs, now)),
    span(` ${over}/${stages.length} stages`, "muted"),
    ...named.flatMap((stage) => {
      const time = stageTime(stage, now) ?? 0;
      return [span("  "), span(stage.id, "strong"), span(` ${shortDuration(time)}`, "muted")];
    }),
  ];
}

/** Stages one below the other, with up to three notes of running and failed actions on the bastion. */
export function stageList({ model, theme, width, now }: StagesProps): readonly Line[] {
  const { glyphs } = theme;
  return model.stages.flatMap((stage) => {
    const time = stageTime(stage, now);
    const isNow = stage.state === "running" || stage.state === "failed";
    const timeText = stage.state === "pending" || stage.state === "skipped" ? "" : shortDuration(time ?? 0);
    const line = justify(
      [
        span(" "),
        stageMark(stage, glyphs, now),
        span(` ${stage.id}`, isNow ? "strong" : stage.state === "pending" ? "muted" : "plain"),
      ],
      [span(timeText, "muted")],
      width,
      glyphs,
    );
    const notes = stage.actions
      .filter(({ outcome, problem }) => outcome === undefined || problem !== undefined)
      .slice(0, 3)
      .map(({ item, note, problem, action }) => [
        span(
          `   ${item === undefined ? "" : `${item}: `}${causeFirst(problem)?.message ?? note ?? action}`,
          problem ? "failed" : "muted",
        ),
      ]);
    const reason = stage.reason === undefined ? [] : [[span(`   ${stage.reason}`, "muted")]];
    return [line, ...notes, ...reason];
  });
}
