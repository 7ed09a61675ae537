import { mayResume, repeatCommand } from "../repeat-command.ts";
import { sorts, type Filter } from "../row-order.ts";
import { type KeyPress, isMove, linesMoved, pressScreenKey, typeInto } from "./keys.ts";
import { pressOutputKey, typeOutputSearch } from "./output-keys.ts";
import type { RunEffect, KeyResult, RunUi } from "./run-ui.ts";
import type { Scene } from "./scene.ts";

/** The view after a key, and its effect. Pure. */
export function pressKey(scene: Scene, press: KeyPress): KeyResult {
  const { ui } = scene;
  if (press.name === "ctrl+c")
    return { ui, effect: scene.replay ? { type: "leave", why: "detached" } : { type: "interrupt" } };
  const effect = pressScreenKey(press);
  if (effect) return { ui, effect };
  if (ui.stopping) return chooseStop(scene, press);
  if (ui.resuming) return decideResume(ui, press);
  if (scene.question) return typeAnswer(scene, press);
  if (ui.searching) return typeSearch(scene, press);
  if (ui.find.typed !== undefined) return { ui: typeOutputSearch(scene, press) };
  if (ui.overlay !== undefined) return inOverlay(scene, press);
  return (
    atRest(scene, press) ??
    inReplay(scene, press) ??
    (ui.pane === "node" ? pressOutputKey(scene, press) : undefined) ??
    pressCommonKey(scene, press) ??
    (ui.pane === "node" ? inNode(scene, press) : inNodes(scene, press))
  );
}

function chooseStop({ ui }: Scene, { name }: KeyPress): KeyResult {
  switch (name) {
    case "w":
    case "enter":
    case "escape":
      return { ui: { ...ui, stopping: false } };
    case "a":
      return { ui, effect: { type: "abort" } };
    case "d":
    case "q":
      return { ui, effect: { type: "leave", why: "detached" } };
    default:
      return { ui };
  }
}

/** Only `y` resumes the run; every other key closes the question. */
function decideResume(ui: RunUi, { name }: KeyPress): KeyResult {
  const closed = { ...ui, resuming: false };
  return name === "y" ? { ui: closed, effect: { type: "resume" } } : { ui: closed };
}

function typeAnswer({ ui, question }: Scene, press: KeyPress): KeyResult {
  if (!question) return { ui };
  const { id, kind, secret } = question;
  const typed = ui.answer.id === id ? ui.answer.typed : "";
  if (kind === "confirm") return decideConfirm(ui, id, press);
  switch (press.name) {
    case "escape":
    case "tab":
      return { ui: { ...ui, aside: true } };
    case "enter": {
      if (typed === "" && !secret) return { ui, effect: { type: "say", text: "type the answer, then Enter" } };
      return sendAnswer(ui, id, typed);
    }
    default: {
      const next = typeInto(typed, press);
      return next === undefined ? { ui } : { ui: { ...ui, answer: { id, typed: next } } };
    }
  }
}

function sendAnswer(ui: RunUi, id: string, value: string): KeyResult {
  const sent = new Set([...ui.sent, id]);
  return { ui: { ...ui, sent, answer: { id: "", typed: "" } }, effect: { type: "answer", id, value } };
}

/** A confirmation takes one key; every other key leaves it open. */
function decideConfirm(ui: RunUi, id: string, { name }: KeyPress): KeyResult {
  switch (name) {
    case "y":
    case "Y":
      return sendAnswer(ui, id, "yes");
    case "n":
    case "N":
      return sendAnswer(ui, id, "no");
    case "escape":
    case "tab":
      return { ui: { ...ui, aside: true } };
    default:
      return { ui, effect: { type: "say", text: "waiting for you: y goes on, n does not, Tab looks around first" } };
  }
}

function typeSearch(scene: Scene, press: KeyPress): KeyResult {
  const { ui } = scene;
  const search = (text: string): KeyResult => {
    const { selected: _, ...rest } = ui;
    return { ui: { ...rest, search: text, listTop: 0 } };
  };
  switch (press.name) {
    case "enter":
      return { ui: { ...ui, searching: false } };
    case "escape":
      return { ui: { ...search("").ui, searching: false } };
    default: {
      if (isMove(press)) return inNodes(scene, press);
      const next = typeInto(ui.search, press);
      return next === undefined ? { ui } : search(next);
    }
  }
}

function inOverlay({ ui, page }: Scene, { name }: KeyPress): KeyResult {
  if (["escape", "q", "enter", "?", "s", "d", "w"].includes(name)) {
    const { overlay: _, ...rest } = ui;
    return { ui: { ...rest, overlayTop: 0 } };
  }
  return { ui: { ...ui, overlayTop: Math.max(0, ui.overlayTop + (linesMoved(name, page.list) ?? 0)) } };
}

/** The keys of a run that has ended and may be resumed, while its nodes are listed. */
function atRest({ ui, model }: Scene, { name }: KeyPress): KeyResult | undefined {
  if (!ui.resting || ui.pane === "node" || !mayResume(model)) return undefined;
  if (name === "R") return { ui: { ...ui, resuming: true } };
  if (name === "c") return { ui, effect: { type: "copy", text: `kcore runs resume ${model.runId}` } };
  return undefined;
}

const replayKeys: Readonly<Record<string, RunEffect>> = {
  space: { type: "toggle" },
  left: { type: "seek", by: -5000 },
  right: { type: "seek", by: 5000 },
  "<": { type: "seek", by: -30_000 },
  ">": { type: "seek", by: 30_000 },
  ",": { type: "step", direction: -1 },
  ".": { type: "step", direction: 1 },
  "+": { type: "speed", factor: 2 },
  "=": { type: "speed", factor: 2 },
  "-": { type: "speed", factor: 0.5 },
};

function inReplay({ ui, replay }: Scene, { name }: KeyPress): KeyResult | undefined {
  const effect = replay ? replayKeys[name] : undefined;
  return effect && { ui, effect };
}

/** The keys that mean the same in the list of nodes and in a node. */
function pressCommonKey(scene: Scene, { name }: KeyPress): KeyResult | undefined {
  const { ui, model, row } = scene;
  switch (name) {
    case "q":
      return { ui, effect: { type: "leave", why: "detached" } };
    case "?":
      return { ui: { ...ui, overlay: "help", overlayTop: 0 } };
    case "s":
      if (scene.showsStages) return { ui, effect: { type: "say", text: "all stages are in sight, beside the nodes" } };
      return { ui: { ...ui, overlay: "stages", overlayTop: 0 } };
    case "w":
      return { ui: { ...ui, overlay: "warnings", overlayTop: 0 } };
    case "d":
      return model.dryRun ? { ui: { ...ui, overlay: "foresight", overlayTop: 0 } } : { ui };
    case "tab":
      return { ui: { ...ui, aside: false } };
    case "c":
      return {
        ui,
        effect: { type: "copy", text: repeatCommand(model.command, row && !row.isBastion ? row.name : undefined) },
      };
    case "o":
      return ui.pane === "node" ? toggleFollow(scene) : openNode(scene);
    default:
      return undefined;
  }
}

/** Follows the output of the running step, or stops following. */
function toggleFollow({ ui, item }: Scene): KeyResult {
  if (ui.follow && item?.outcome === undefined)
    return { ui: { ...ui, follow: false }, effect: { type: "say", text: "no longer following the output" } };
  const { step: _, ...rest } = ui;
  return {
    ui: { ...rest, follow: true, bodyTop: 0 },
    effect: { type: "say", text: "following the output of what runs" },
  };
}

function openNode({ ui, row }: Scene): KeyResult {
  if (!row) return { ui };
  const { step: _, ...rest } = ui;
  const { name, rank } = row;
  return {
    ui: { ...rest, pane: "node", selected: { name, rank }, stepTop: 0, bodyTop: 0, follow: true, find: { text: "" } },
  };
}

function inNodes(scene: Scene, { name }: KeyPress): KeyResult {
  const { ui, rows, selected, page } = scene;
  const { selected: _, ...free } = ui;
  const move = (to: number): KeyResult => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    return row ? { ui: { ...ui, selected: { name: row.name, rank: row.rank } } } : { ui };
  };
  const filter = (wanted: Filter): KeyResult => ({
    ui: { ...free, filter: ui.filter === wanted ? "all" : wanted, listTop: 0 },
  });
  const by = linesMoved(name, page.list);
  if (by === -Infinity) return { ui: { ...free, listTop: 0 } };
  if (by !== undefined) return move(selected + by);
  switch (name) {
    case "enter":
    case "right":
    case "l":
      return openNode(scene);
    case "/":
      return { ui: { ...ui, searching: true } };
    case "f":
      return filter("failed");
    case "m":
      return filter("changed");
    case "r":
      return filter("running");
    case "S":
      return sortNext(scene);
    case "a":
    case "escape":
      return { ui: { ...free, filter: "all", search: "", sort: "state", listTop: 0 } };
    default:
      return { ui };
  }
}

/** Sorts by the next criterion for which the record has a value of any node; the selected node stays selected. */
function sortNext({ ui, model, row }: Scene): KeyResult {
  const nodes = [...model.nodes.values()];
  const known = sorts.filter(
    (sort) =>
      !(sort === "role" && nodes.every(({ roles }) => !roles)) && !(sort === "dc" && nodes.every(({ dc }) => !dc)),
  );
  const sort = known[(known.indexOf(ui.sort) + 1) % known.length] ?? "state";
  return {
    ui: { ...ui, sort, ...(row && { selected: { name: row.name, rank: row.rank } }) },
    effect: { type: "say", text: sort === "state" ? "in the order of the run, failures first" : `sorted by ${sort}` },
  };
}

function inNode(scene: Scene, { name }: KeyPress): KeyResult {
  const { ui, items, item, itemIndex, page } = scene;
  const { step: _, ...free } = ui;
  // Another step keeps the search, but not the position of the present match.
  const find = { text: ui.find.text };
  const move = (to: number): KeyResult => {
    const item = items[Math.max(0, Math.min(items.length - 1, to))];
    return item ? { ui: { ...ui, step: item.key, bodyTop: 0, follow: true, find } } : { ui };
  };
  // The visible step becomes the selected one, so that it stays when the next step begins.
  const scroll = (by: number): KeyResult => ({
    ui: { ...ui, ...(item ? { step: item.key } : {}), bodyTop: Math.max(0, ui.bodyTop + by), follow: false },
  });
  const neighbour = (by: 1 | -1): KeyResult => {
    const row = scene.rows[Math.max(0, Math.min(scene.rows.length - 1, scene.selected + by))];
    return row
      ? { ui: { ...free, selected: { name: row.name, rank: row.rank }, stepTop: 0, bodyTop: 0, follow: true, find } }
      : { ui };
  };
  const by = linesMoved(name, page.body);
  if (by === -Infinity) return { ui: { ...free, stepTop: 0, bodyTop: 0, follow: true, find } };
  if (by !== undefined) return /^page|^space/.test(name) ? scroll(by) : move(itemIndex + by);
  switch (name) {
    case "J":
      return scroll(1);
    case "K":
      return scroll(-1);
    case "n":
      return neighbour(1);
    case "p":
      return neighbour(-1);
    case "escape":
    case "left":
    case "h":
    case "backspace":
      return { ui: { ...free, pane: "nodes", stepTop: 0, bodyTop: 0, follow: true } };
    default:
      return { ui };
  }
}
