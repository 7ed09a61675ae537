import { readFileSync } from "node:fs";
import { resolve } from "node:path";

/** The environment of a daemon's unit: a test's or bench's process then uses the memory of a deployed one. */
export function unitEnvironment(unit: "controller" | "node-agent"): Readonly<Record<string, string>> {
  const text = readFileSync(resolve(import.meta.dirname, `../../templates/kcore-${unit}.service.hbs`), "utf8");
  const settings = [...text.matchAll(/^Environment="([^=]+)=(.*)"$/gm)];
  return Object.fromEntries(settings.map(([, name = "", value = ""]) => [name, value]));
}
