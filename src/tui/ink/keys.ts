import type { Key } from "ink";
import { widthOf } from "#base/text.ts";
import { span, wrapWords, type Line } from "./text.ts";
import type { Theme } from "./theme.ts";

/** A key as the views name it: `up`, `pagedown`, `enter`, `escape`, `ctrl+c`, or the character that it types. */
export interface KeyPress {
  readonly name: string;
  /** The text that the key types into a field; empty for keys that type nothing. */
  readonly text: string;
}

/** Ink's reading of some bytes as keys; a burst of characters is one key each. */
export function keyPresses(input: string, key: Key): readonly KeyPress[] {
  const named = namedKey(key);
  if (named !== undefined) return [{ name: named, text: "" }];
  if (key.ctrl) return input === "" ? [] : [{ name: `ctrl+${input.toLowerCase()}`, text: "" }];
  // Alt with a character, or the rest of an unknown sequence of the terminal, is no typed key.
  if (key.meta || (input.length > 1 && unknownSequence.test(input))) return [];
  return Array.from(input).flatMap((character) => {
    if (character === "\r" || character === "\n") return [{ name: "enter", text: "" }];
    if (character === "\t") return [{ name: "tab", text: "" }];
    if (character === "\u007f" || character === "\b") return [{ name: "backspace", text: "" }];
    if (character < " ") return [{ name: `ctrl+${String.fromCharCode(character.charCodeAt(0) + 96)}`, text: "" }];
    return [{ name: character === " " ? "space" : character, text: character }];
  });
}

/** Matches a control sequence (CSI, SS3) without its escape character, also one that was cut off. */
const unknownSequence = /^(?:\[\[?[0-?]*[ -/]*[@-~]?|O[0-9;]*[@-~]?)$/;

function namedKey(key: Key): string | undefined {
  if (key.upArrow) return "up";
  if (key.downArrow) return "down";
  if (key.leftArrow) return "left";
  if (key.rightArrow) return "right";
  if (key.pageUp) return "pageup";
  if (key.pageDown) return "pagedown";
  if (key.home) return "home";
  if (key.end) return "end";
  if (key.return) return "enter";
  if (key.escape) return "escape";
  if (key.tab) return key.shift ? "shift+tab" : "tab";
  // Terminals send either of the two for the backspace key.
  if (key.backspace || key.delete) return "backspace";
  return undefined;
}

/** A line of the help, and of the footer where there is room. */
export interface KeyHelp {
  /** As it is shown: `j`, `↑↓`. */
  readonly keys: string;
  /** One or two words, for the footer; absent for a key of the help alone. */
  readonly short?: string;
  readonly long: string;
}

/** The footer: as many keys as fit, in the order given. */
export function footerLine(keys: readonly KeyHelp[], width: number): Line {
  const line: Line[number][] = [];
  let used = 1;
  for (const { keys: key, short } of keys) {
    if (short === undefined) continue;
    const needs = widthOf(key) + 1 + widthOf(short) + (line.length > 0 ? 2 : 0);
    if (used + needs > width) break;
    line.push(span(line.length > 0 ? "  " : " "), span(key, "strong"), span(` ${short}`, "muted"));
    used += needs;
  }
  return line;
}

/** The footer while a search is typed. */
export function searchField(
  search: string,
  { glyphs, unicode }: Theme,
  { enter, escape } = { enter: "keep", escape: "clear" },
): Line {
  return [
    span(" /", "accent"),
    span(search),
    span(unicode ? "█" : "_", "accent"),
    span(`   ${glyphs.enter} ${enter}  Esc ${escape}`, "muted"),
  ];
}

/** The help: each key with its explanation, which wraps below itself. */
export function helpLines(keys: readonly KeyHelp[], width: number): readonly Line[] {
  const column = Math.min(16, Math.max(...keys.map(({ keys: key }) => widthOf(key))));
  return keys.flatMap(({ keys: key, long }) =>
    wrapWords(long, width - column - 3).map((part, index): Line => {
      const shown = index === 0 ? key : "";
      return [span(" ".repeat(1 + Math.max(0, column - widthOf(shown)))), span(shown, "strong"), span(`  ${part}`)];
    }),
  );
}

/** An effect of a key on the terminal itself. */
export type ScreenEffect =
  { readonly type: "suspend" } | { readonly type: "redraw" } | { readonly type: "copy"; readonly text: string };

/** The keys that mean the same everywhere: suspend the view, draw the screen anew. */
export function pressScreenKey({ name }: KeyPress): ScreenEffect | undefined {
  if (name === "ctrl+z") return { type: "suspend" };
  return name === "ctrl+l" ? { type: "redraw" } : undefined;
}

/** The text of a field after a key; undefined: the key does not change the text. */
export function typeInto(field: string, { name, text }: KeyPress): string | undefined {
  switch (name) {
    case "backspace":
      return Array.from(field).slice(0, -1).join("");
    case "ctrl+u":
      return "";
    default:
      return text === "" ? undefined : field + text;
  }
}

/** Whether a key moves in the list while a search is typed. */
export function isMove({ name }: KeyPress): boolean {
  return ["up", "down", "pageup", "pagedown"].includes(name);
}

/** Lines by which a key moves, ±Infinity for both ends; undefined for every other key. */
export function linesMoved(name: string, page: number): number | undefined {
  switch (name) {
    case "down":
    case "j":
      return 1;
    case "up":
    case "k":
      return -1;
    case "pagedown":
    case "space":
      return page;
    case "pageup":
      return -page;
    case "g":
    case "home":
      return -Infinity;
    case "G":
    case "end":
      return Infinity;
    default:
      return undefined;
  }
}
