import type { KeyPress } from "./keys.ts";

/** What keys do in every view alike. */
export type ScreenDeed =
  { readonly type: "suspend" } | { readonly type: "redraw" } | { readonly type: "copy"; readonly text: string };

/** The keys that mean the same wherever somebody is: to the shell and back, and draw it all anew. */
export function pressScreenKey({ name }: KeyPress): ScreenDeed | undefined {
  switch (name) {
    case "ctrl+z":
      return { type: "suspend" };
    case "ctrl+l":
      return { type: "redraw" };
    default:
      return undefined;
  }
}

/** What a key makes of the text in a field; undefined: it does not change it. */
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

/** Whether a key moves in the list while somebody types what to search in it. */
export function isMove({ name }: KeyPress): boolean {
  return ["up", "down", "pageup", "pagedown"].includes(name);
}
