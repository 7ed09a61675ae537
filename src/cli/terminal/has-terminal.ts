import { closeSync, openSync } from "node:fs";
import { isatty } from "node:tty";

/**
 * Whether an operator's terminal belongs to this process, wherever its streams go. Such a terminal can be closed, and its
 * Ctrl-C and Ctrl-Z reach the process.
 */
export function hasTerminal(): boolean {
  return [0, 1, 2].some((descriptor) => isatty(descriptor)) || opens("/dev/tty");
}

function opens(file: string): boolean {
  try {
    closeSync(openSync(file, "r"));
    return true;
  } catch {
    return false;
  }
}
