import { readFileSync } from "node:fs";
import { resolve } from "node:path";

/** What the unit of a daemon sets for it: a test's or a bench's process uses the memory that a deployed one does. */
export function unitEnvironment(unit: "controller" | "node-agent"): Readonly<Record<string, string>> {
  const text = readFileSync(resolve(import.meta.dirname, `../../templates/kcore-${unit}.service.hbs`), "utf8");
  const settings = [...text.matchAll(/^Environment="([^=]+)=(.*)"$/gm)];
  return Object.fromEntries(settings.map(([, name = "", value = ""]) => [name, value]));
}
