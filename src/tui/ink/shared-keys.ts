import type { KeyPress } from "./keys.ts";

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
