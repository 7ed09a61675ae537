import { shortAge } from "#base/units.ts";
import type { Question } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { describeDryRun, upcomingStages } from "../questions.ts";
import { besides, filled, titled, tooSmall, windowAround } from "./blocks.ts";
import { footerOf } from "./footer.ts";
import { headerLines } from "./header.ts";
import { troubleLines } from "./overlay.ts";
import { arrangeMain } from "./panes.ts";
import { playerLine, questionLines, resumeLines, stopLines } from "./panels.ts";
import type { Scene, SceneProps } from "./scene.ts";
import { stageList, stageStrip } from "./stages.ts";
import { span, type Line } from "./text.ts";

/** Columns of the list of stages beside the nodes, with the bar between list and nodes. */
const sidebar = 30;

/** Lays the run out on the terminal. Pure. */
export function arrange(props: SceneProps): Scene {
  const { model, ui, size, theme, now, player } = props;
  const { columns: width, rows: height } = size;
  const open = player || model.state === "finished" ? [] : model.questions.filter(({ id }) => !ui.sent.has(id));
  // A step in full screen leaves room only for a question, a replay's position and the footer.
  const isFull = ui.pane === "node" && ui.full && ui.overlay === undefined;
  const isWide = width >= 140 && height >= 20 && !isFull;
  const header = isFull ? [] : headerLines({ ...props, width, compact: height < 18, isAsking: open.length > 0 });
  const stages = isFull || isWide || height < 10 ? [] : stageStrip({ model, theme, width, now }, height < 24 ? 1 : 2);
  const warnings = isFull || height < 16 ? [] : troubleLines(model, theme);
  const bar = player && height >= 10 ? [playerLine(player, theme, width)] : [];
  const used = header.length + stages.length + warnings.length + bar.length + 1;

  const question = ui.aside || ui.stopping ? undefined : open[0];
  const panel = panelOf(props, question, open.length).slice(0, Math.max(0, height - used - 1));

  const room = Math.max(0, height - used - panel.length);
  const main = arrangeMain(props, isWide ? width - sidebar : width, room);
  const footer = footerOf(props, { question: question?.kind, open: open.length });
  const tiny = tooSmall(size, `${model.title} ${model.state}`);
  const sidebarLines = isWide ? stageList({ model, theme, width: sidebar - 3, now }) : [];
  return {
    ...main,
    model,
    replay: player !== undefined,
    showsStages: isWide && ui.overlay === undefined && sidebarLines.length < room,
    ...(question ? { question } : {}),
    lines: tiny
      ? [tiny]
      : [
          ...header,
          ...stages,
          ...filled(isWide ? withStages(props, sidebarLines, main.lines, room) : main.lines, room),
          ...warnings,
          ...panel,
          ...bar,
          footer,
        ],
  };
}

/** The panel above the footer: the choice after a Ctrl-C, else the question whether to resume, else the run's question. */
function panelOf(
  { model, ui, theme, size, lastDryRun, real }: SceneProps,
  question: Question | undefined,
  open: number,
): readonly Line[] {
  if (ui.stopping) return stopLines(model, theme, size.columns);
  if (ui.resuming) return resumeLines(model, theme, size.columns);
  if (!question) return [];
  const dryRun = lastDryRun?.();
  const follows = [
    upcomingStages(model),
    ...(dryRun ? [describeDryRun(dryRun, shortAge(real - dryRun.at))] : []),
  ].filter((line) => line !== "");
  const typed = ui.answer.id === question.id ? ui.answer.typed : "";
  return questionLines(question, open, typed, theme, size.columns, follows);
}

function withStages(
  { model, theme }: SceneProps,
  stages: readonly Line[],
  main: readonly Line[],
  height: number,
): readonly Line[] {
  const list = fitList(stages, height - 1, model);
  const title = titled([span("stages", "muted")], sidebar - 3, theme.glyphs);
  return besides([title, ...list], sidebar - 2, main, theme, height, true);
}

/** As many stages as fit, around the newest one that has begun. */
function fitList(lines: readonly Line[], height: number, { stages }: RunModel): readonly Line[] {
  const now = stages.findLastIndex(({ state }) => state !== "pending");
  const { top, end } = windowAround(lines.length, height, 0, Math.max(0, Math.min(lines.length - 1, now + 2)));
  return lines.slice(top, end);
}
