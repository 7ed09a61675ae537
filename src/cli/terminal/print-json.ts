import { escapeControls } from "#errors/draw.ts";

/** A value as JSON for a screen or a pipe: what is read from it is the same, and no character of it drives a terminal (S-4). */
export function printJson(value: unknown, indent?: number): string {
  return escapeControls(JSON.stringify(value, undefined, indent));
}
