import { escapeControls } from "#errors/draw.ts";

/**
 * A value as JSON for a screen or a pipe. Parsing it gives the same value, and no character of it controls a terminal
 * (S-4).
 */
export function printJson(value: unknown, indent?: number): string {
  return escapeControls(JSON.stringify(value, undefined, indent));
}
