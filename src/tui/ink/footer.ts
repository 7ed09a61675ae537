import type { Question } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { mayResume } from "../repeat-command.ts";
import { footerLine, searchField } from "./keys.ts";
import { runKeys } from "./run-help.ts";
import type { SceneProps } from "./scene.ts";
import { justify, lineWidth, span, type Line } from "./text.ts";
import type { Theme } from "./theme.ts";

/** The last line: a message, a field to type in, or the keys of the moment. */
export function footerOf(
  { model, ui, theme, size: { columns: width }, real, player }: SceneProps,
  { asked, waiting }: { readonly asked: Question["kind"] | undefined; readonly waiting: number },
): Line {
  const { glyphs } = theme;
  if (ui.toast && real < ui.toast.until) return [span(` ${ui.toast.text}`, ui.toast.role)];
  if (ui.stopping) return footerLine([{ keys: glyphs.enter, short: "wait", long: "" }], width);
  if (ui.resuming) return footerLine([{ keys: "y n", short: "decide", long: "" }], width);
  if (asked !== undefined)
    return footerLine(
      [
        asked === "confirm"
          ? { keys: "y n", short: "decide", long: "" }
          : { keys: glyphs.enter, short: "answer", long: "" },
        { keys: "Tab", short: "look around first", long: "" },
        { keys: "Ctrl-C", short: "stop", long: "" },
      ],
      width,
    );
  if (ui.searching) return searchField(ui.search, theme);
  if (ui.find.typed !== undefined) return searchField(ui.find.typed, theme, { enter: "find", escape: "back" });
  if (ui.overlay !== undefined)
    return footerLine(
      [
        { keys: "Esc", short: "back", long: "" },
        { keys: glyphs.upDown, short: "scroll", long: "" },
      ],
      width,
    );
  if (ui.resting && ui.pane === "nodes") return restingLine(model, theme, width);
  const keys = footerLine(runKeys(ui, glyphs, { replay: player !== undefined }), waiting > 0 ? width - 30 : width);
  if (waiting === 0) return keys;
  return justify(keys, [span(`${glyphs.unknown} ${waiting} open, Tab answers `, "warning")], width, glyphs);
}

/** After the end of the run: its outcome, and the keys for the next action. */
function restingLine(model: RunModel, { glyphs }: Theme, width: number): Line {
  const isWell = model.outcome === "done";
  const word: Line = [span(" "), span(isWell ? "done" : (model.outcome ?? ""), isWell ? "ok" : "failed")];
  const keys = [
    { keys: "q", short: "leaves", long: "" },
    ...(mayResume(model)
      ? [
          { keys: "c", short: "copies the resume command", long: "" },
          { keys: "R", short: "resumes", long: "" },
        ]
      : []),
    { keys: glyphs.enter, short: "open", long: "" },
    { keys: "?", short: "help", long: "" },
  ];
  return [...word, span(`  ${glyphs.dot} `, "muted"), ...footerLine(keys, width - lineWidth(word) - 4)];
}
