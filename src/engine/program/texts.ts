import { readFileSync } from "node:fs";

/** The sh files beside this module, as they are sent: without comment lines and indentation, read once. */
export function shippedText(name: "host" | "runner" | "step" | "facts"): string {
  let text = cache.get(name);
  if (text === undefined) {
    text = strip(readFileSync(new URL(`./${name}.sh`, import.meta.url), "utf8"));
    cache.set(name, text);
  }
  return text;
}

const cache = new Map<string, string>();

function strip(text: string): string {
  return text
    .split("\n")
    .filter((line) => !/^\s*(#|$)/.test(line))
    .map((line) => line.trimStart())
    .join("\n");
}
