import { type KeyPress, isMove, linesMoved, pressScreenKey, typeInto, type ScreenEffect } from "../keys.ts";
import type { FleetScene } from "./fleet-scene.ts";
import { sectionNames, type FleetUi, type SectionState, type SectionName } from "./fleet-ui.ts";

/** An effect of a key beyond the view itself. */
export type FleetEffect = ScreenEffect | { readonly type: "leave" };

export interface FleetKeyResult {
  readonly ui: FleetUi;
  readonly effect?: FleetEffect;
}

/** The dashboard after a key, and its effect. Pure. */
export function pressFleetKey(scene: FleetScene, press: KeyPress): FleetKeyResult {
  const { ui } = scene;
  const effect: FleetEffect | undefined = press.name === "ctrl+c" ? { type: "leave" } : pressScreenKey(press);
  if (effect) return { ui, effect };
  if (ui.searching) return { ui: typeSearch(scene, press) };
  if (ui.help) return { ui: inHelp(scene, press) };
  return pressCommonKey(scene, press) ?? { ui: ui.isOpen ? inPage(scene, press) : inList(scene, press) };
}

function pressCommonKey({ ui, key, listing }: FleetScene, { name }: KeyPress): FleetKeyResult | undefined {
  switch (name) {
    case "q":
      return { ui, effect: { type: "leave" } };
    case "?":
      return { ui: { ...ui, help: true, bodyTop: 0 } };
    case "tab":
    case "shift+tab": {
      const by = name === "tab" ? 1 : sectionNames.length - 1;
      return { ui: goTo(ui, sectionNames[(sectionNames.indexOf(ui.section) + by) % sectionNames.length]) };
    }
    case "c": {
      const text = key === undefined ? undefined : listing.command(key);
      return text === undefined ? { ui } : { ui, effect: { type: "copy", text } };
    }
    default:
      return /^[1-9]$/.test(name) ? { ui: goTo(ui, sectionNames[Number(name) - 1]) } : undefined;
  }
}

function goTo(ui: FleetUi, section: SectionName | undefined): FleetUi {
  return section === undefined ? ui : { ...ui, section, isOpen: false, bodyTop: 0 };
}

function withSectionState(ui: FleetUi, change: Partial<SectionState>): FleetUi {
  return { ...ui, states: { ...ui.states, [ui.section]: { ...ui.states[ui.section], ...change } } };
}

/** The settings at the first row without a selection, for a list that shows other rows now. */
function atTop(ui: FleetUi, section: SectionName = ui.section): FleetUi {
  const { key: _, ...state } = ui.states[section];
  return { ...ui, states: { ...ui.states, [section]: { ...state, top: 0 } } };
}

function move({ ui, listing }: FleetScene, to: number): FleetUi {
  const key = listing.keys[Math.max(0, Math.min(listing.keys.length - 1, to))];
  return key === undefined ? ui : withSectionState(ui, { key });
}

function typeSearch(scene: FleetScene, press: KeyPress): FleetUi {
  const { ui } = scene;
  const search = (text: string): FleetUi => atTop({ ...ui, search: text });
  switch (press.name) {
    case "enter":
      return { ...ui, searching: false };
    case "escape":
      return { ...search(""), searching: false };
    default: {
      if (isMove(press)) return inList(scene, press);
      const next = typeInto(ui.search, press);
      return next === undefined ? ui : search(next);
    }
  }
}

function scrollPage({ ui, page }: FleetScene, name: string): FleetUi {
  const by = linesMoved(name, page) ?? 0;
  return { ...ui, bodyTop: Math.max(0, Math.min(1e9, ui.bodyTop + by)) };
}

function inHelp(scene: FleetScene, { name }: KeyPress): FleetUi {
  const closes = ["escape", "q", "enter", "?", "h", "backspace", "left"].includes(name);
  return closes ? { ...scene.ui, help: false, bodyTop: 0 } : scrollPage(scene, name);
}

function inPage(scene: FleetScene, { name }: KeyPress): FleetUi {
  const { ui, selected } = scene;
  switch (name) {
    case "escape":
    case "left":
    case "h":
    case "backspace":
      return { ...ui, isOpen: false, bodyTop: 0 };
    case "n":
      return { ...move(scene, selected + 1), bodyTop: 0 };
    case "p":
      return { ...move(scene, selected - 1), bodyTop: 0 };
    default:
      return scrollPage(scene, name);
  }
}

function inList(scene: FleetScene, { name }: KeyPress): FleetUi {
  const { ui, selected, page, listing } = scene;
  const state = ui.states[ui.section];
  const by = linesMoved(name, page);
  if (by === -Infinity) return atTop(ui);
  if (by !== undefined) return move(scene, selected + by);
  switch (name) {
    case "enter":
    case "right":
    case "l":
      return openRow(scene);
    case "/":
      return { ...ui, searching: true };
    case "f":
      return atTop({ ...ui, trouble: !ui.trouble });
    case "s":
      return withSectionState(ui, { sort: (state.sort + 1) % listing.orderCount, top: 0 });
    case "S":
      return withSectionState(ui, { reversed: !state.reversed, top: 0 });
    case "a":
    case "escape": {
      const { dc: _, ...rest } = ui;
      return atTop({ ...rest, search: "", trouble: false });
    }
    default:
      return ui;
  }
}

/** A datacenter opens as the list of its nodes; everything else has a page of its own. */
function openRow({ ui, key }: FleetScene): FleetUi {
  if (key === undefined) return ui;
  if (ui.section === "dcs") return atTop({ ...ui, section: "nodes", dc: key }, "nodes");
  return { ...withSectionState(ui, { key }), isOpen: true, bodyTop: 0 };
}
