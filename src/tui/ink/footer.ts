import { footerLine, searchField } from "./keys.ts";
import { runKeys } from "./run-help.ts";
import type { SceneProps } from "./scene.ts";
import { justify, span, type Line } from "./text.ts";

/** The last line: what was just done, a field to type in, or the keys that do something now. */
export function footerOf(
  { ui, theme, size: { columns: width }, real, player }: SceneProps,
  { asked, waiting }: { readonly asked: boolean; readonly waiting: number },
): Line {
  const { glyphs } = theme;
  if (ui.toast && real < ui.toast.until) return [span(` ${ui.toast.text}`, ui.toast.role)];
  if (ui.stopping) return footerLine([{ keys: glyphs.enter, short: "wait", long: "" }], width);
  if (asked)
    return footerLine(
      [
        { keys: glyphs.enter, short: "answer", long: "" },
        { keys: "Tab", short: "look around first", long: "" },
        { keys: "Ctrl-C", short: "stop", long: "" },
      ],
      width,
    );
  if (ui.searching) return searchField(ui.search, theme);
  if (ui.overlay !== undefined)
    return footerLine(
      [
        { keys: "Esc", short: "back", long: "" },
        { keys: glyphs.upDown, short: "scroll", long: "" },
      ],
      width,
    );
  const keys = footerLine(runKeys(ui, glyphs, { replay: player !== undefined }), waiting > 0 ? width - 30 : width);
  if (waiting === 0) return keys;
  return justify(keys, [span(`${glyphs.unknown} ${waiting} open, Tab answers `, "warning")], width, glyphs);
}
