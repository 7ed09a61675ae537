import { type KeyPress, linesMoved, typeInto } from "./keys.ts";
import type { KeyResult, RunUi } from "./run-ui.ts";
import type { Scene } from "./scene.ts";
import { topToShow } from "./step-body.ts";

/** The keys of a step's texts, beside the steps or over the whole terminal; undefined for every other key. */
export function pressOutputKey(scene: Scene, press: KeyPress): KeyResult | undefined {
  const { ui } = scene;
  switch (press.name) {
    case "/":
      return { ui: { ...ui, find: { ...ui.find, typed: "" } } };
    case "n":
    case "N":
      return ui.find.text !== "" ? goToMatch(scene, press.name === "n" ? 1 : -1) : ui.full ? { ui } : undefined;
    case "w":
      return {
        ui: {
          ...ui,
          wrap: !ui.wrap,
          find: { text: ui.find.text },
          ...(!ui.follow && { bodyShare: ui.bodyTop / Math.max(1, scene.page.count) }),
        },
        effect: { type: "say", text: ui.wrap ? "long lines are cut; w wraps them" : "long lines are wrapped" },
      };
    case "escape":
      if (ui.find.text !== "") return { ui: { ...ui, find: { text: "" } } };
      return ui.full ? { ui: { ...ui, full: false } } : undefined;
    case "enter":
      return { ui: { ...withVisibleStep(scene), full: !ui.full } };
    default:
      return ui.full ? pressInFull(scene, press) : undefined;
  }
}

/** A key while a step fills the whole terminal. */
function pressInFull(scene: Scene, { name }: KeyPress): KeyResult | undefined {
  const { ui, page } = scene;
  const scroll = (to: number): KeyResult => ({
    ui: { ...withVisibleStep(scene), bodyTop: Math.max(0, to), follow: false },
  });
  const isPaged = /^page|^space/.test(name);
  const by = isPaged ? undefined : linesMoved(name === "J" || name === "K" ? name.toLowerCase() : name, 1);
  if (by !== undefined) return scroll(Math.min(page.count, ui.bodyTop + by));
  switch (name) {
    case "left":
    case "h":
    case "backspace":
      return { ui: { ...ui, full: false } };
    case "p":
      return { ui };
    default:
      return undefined;
  }
}

/** The settings with the visible step selected: the step stays, also when the next step begins. */
function withVisibleStep({ ui, item }: Scene): RunUi {
  return item ? { ...ui, step: item.key } : ui;
}

/** Goes to the next match (1) or the match before (-1); after the last match comes the first. */
function goToMatch(scene: Scene, by: 1 | -1): KeyResult {
  const { ui, page } = scene;
  const { matches } = page;
  if (!matches) return { ui, effect: { type: "say", text: "still reading the output" } };
  const [first, last] = [matches[0], matches.at(-1)];
  if (first === undefined || last === undefined)
    return { ui, effect: { type: "say", text: `“${ui.find.text}” is not in it` } };
  const at = ui.find.row ?? (by === 1 ? ui.bodyTop - 1 : ui.bodyTop);
  const next = by === 1 ? matches.find((row) => row > at) : matches.findLast((row) => row < at);
  const row = next ?? (by === 1 ? first : last);
  const to = { ...withVisibleStep(scene), follow: false, bodyTop: topToShow(row, ui.bodyTop, page.body) };
  const found: KeyResult = { ui: { ...to, find: { text: ui.find.text, row } } };
  if (next !== undefined) return found;
  return { ...found, effect: { type: "say", text: by === 1 ? "on from the top" : "on from the end" } };
}

/** The settings after a key while a search is typed; Enter begins the search. */
export function typeOutputSearch(scene: Scene, press: KeyPress): RunUi {
  const { ui } = scene;
  const { typed = "", ...find } = ui.find;
  switch (press.name) {
    case "escape":
      return { ...ui, find };
    case "enter":
      // Nothing was typed: the former search continues.
      if (typed === "") return { ...ui, find };
      return { ...withVisibleStep(scene), follow: false, find: { text: typed, isNew: true } };
    default: {
      const next = typeInto(typed, press);
      return next === undefined ? ui : { ...ui, find: { ...find, typed: next } };
    }
  }
}
