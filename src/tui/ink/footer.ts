import type { Question } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { mayResume } from "../repeat-command.ts";
import { footerLine, searchField, type KeyHelp } from "./keys.ts";
import type { SceneProps } from "./scene.ts";
import { justify, lineWidth, span, type Line } from "./text.ts";
import type { Theme, Glyphs } from "./theme.ts";
import type { RunUi } from "./run-ui.ts";

/**
 * The last line: a message, a field to type in, or the keys. `question`: the kind of the question that keys answer; `open`: the
 * number of open questions.
 */
export function footerOf(
  { model, ui, theme, size: { columns: width }, real, player }: SceneProps,
  { question, open }: { readonly question: Question["kind"] | undefined; readonly open: number },
): Line {
  const { glyphs } = theme;
  if (ui.toast && real < ui.toast.until) return [span(` ${ui.toast.text}`, ui.toast.role)];
  if (ui.stopping) return footerLine([{ keys: glyphs.enter, short: "wait", long: "" }], width);
  if (ui.resuming) return footerLine([{ keys: "y n", short: "decide", long: "" }], width);
  if (question !== undefined)
    return footerLine(
      [
        question === "confirm"
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
  const keys = footerLine(runKeys(ui, glyphs, { replay: player !== undefined }), open > 0 ? width - 30 : width);
  if (open === 0) return keys;
  return justify(keys, [span(`${glyphs.unknown} ${open} open, Tab answers `, "warning")], width, glyphs);
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

/** The keys that do something now, the most important first. */
export function runKeys(
  ui: Pick<RunUi, "pane"> & Partial<Pick<RunUi, "full" | "find">>,
  glyphs: Glyphs,
  { replay }: { readonly replay: boolean },
): readonly KeyHelp[] {
  const node = ui.pane === "node";
  const search = searchKeys((ui.find?.text ?? "") !== "");
  if (node && ui.full) return outputKeys(glyphs, search, { replay });
  return [
    {
      keys: glyphs.upDown,
      short: node ? "step" : "move",
      long: node ? "to another step (also j, k)" : "to another node (also j, k)",
    },
    node
      ? { keys: "Esc", short: "back", long: "back to all nodes (also h, Backspace)" }
      : { keys: glyphs.enter, short: "open", long: "open the node: its steps, their changes and output (also l)" },
    { keys: "?", short: "help", long: "this help" },
    { keys: "q", short: "leave", long: replay ? "leave" : "leave; the run goes on, kcore runs attach comes back" },
    ...(replay
      ? [
          { keys: "Space", short: "play", long: "play or pause" },
          { keys: glyphs.leftRight, short: "5 s", long: "back or forth by 5 seconds; < and > by 30" },
          { keys: ", .", short: "step", long: "to the end of the step before, or of the next one" },
          { keys: "+ -", short: "speed", long: "faster, slower" },
        ]
      : []),
    ...(node
      ? [
          { keys: glyphs.enter, short: "full screen", long: "the step's output over the whole terminal, and back" },
          { keys: "n p", short: "node", long: "the next or the previous node" },
          { keys: "PgUp PgDn", short: "scroll", long: "scroll what the step says (also J, K by a line)" },
          ...search,
          { keys: "o", short: "follow", long: "follow the output of what runs, or stop following" },
        ]
      : [
          {
            keys: "/",
            short: "search",
            long: "only nodes that fit all words: a part of a name, step or reason, role:worker, dc:fra1, state:failed, !not",
          },
          { keys: "f", short: "failed", long: "only failed nodes; again: all" },
          { keys: "m", short: "changed", long: "only nodes with changes; again: all" },
          { keys: "r", short: "running", long: "only nodes where something runs; again: all" },
          { keys: "S", short: "sort", long: "by name, role, datacenter, time; failed nodes stay at the top" },
          { keys: "PgUp PgDn", long: "a page up or down" },
        ]),
    { keys: "c", short: "copy", long: "copy the command that repeats the step on this node" },
    { keys: "g G", long: "to the first or the last; g also follows the run again" },
    ...(node
      ? []
      : [
          { keys: "a", long: "all nodes again: no filter, no search, in the order of the run" },
          { keys: "o", long: "follow the output of the selected node" },
        ]),
    { keys: "s", short: "stages", long: "all stages, with what the bastion does" },
    ...(node ? [] : [{ keys: "w", long: "all warnings" }]),
    { keys: "d", long: "in a dry run: the changes that it would make, with diffs" },
    { keys: "Tab", long: "from an open question to the view and back" },
    ...(replay ? [] : [{ keys: "Ctrl-C", long: "stop: no new step starts; again: abort; again: leave at once" }]),
    { keys: "Ctrl-Z", long: "suspend this view; fg comes back, the run goes on" },
    { keys: "Ctrl-L", long: "draw everything again" },
  ];
}

function searchKeys(isSearching: boolean): readonly KeyHelp[] {
  const next = { keys: "n N", long: "to the next match, or the one before, while something is searched" };
  return [
    ...(isSearching ? [{ ...next, short: "match" }] : []),
    { keys: "/", short: "search", long: "search in what the step says, all that it printed; Esc ends it" },
    ...(isSearching ? [] : [next]),
    { keys: "w", short: "wrap", long: "cut long lines, or wrap them again" },
  ];
}

/** The keys of a step's texts over the whole terminal. */
function outputKeys(
  glyphs: Glyphs,
  search: readonly KeyHelp[],
  { replay }: { readonly replay: boolean },
): readonly KeyHelp[] {
  return [
    { keys: glyphs.upDown, short: "scroll", long: "scroll by a line (also j, k)" },
    { keys: "PgUp PgDn", short: "page", long: "scroll by a page" },
    { keys: "Esc", short: "back", long: `back to the steps (also ${glyphs.enter}, h, Backspace)` },
    ...search,
    { keys: "g G", short: "top, end", long: "to the first or the last line" },
    { keys: "o", short: "follow", long: "follow the output of what runs, or stop following" },
    { keys: "?", short: "help", long: "this help" },
    { keys: "q", short: "leave", long: replay ? "leave" : "leave; the run goes on, kcore runs attach comes back" },
  ];
}
