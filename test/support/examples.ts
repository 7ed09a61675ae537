import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunEvent } from "#engine/events/event.ts";

const examples = join(import.meta.dirname, "../../examples");

/** The whole projects of examples/. */
export const exampleNames: readonly string[] = readdirSync(examples);

export function exampleFolder(name: string): string {
  return join(examples, name);
}

/** The packs that an example's README adds. */
export function packsOf(name: string): readonly string[] {
  const readme = readFileSync(join(exampleFolder(name), "README.md"), "utf8");
  return Array.from(readme.matchAll(/^kcore pack add \S*packs\/([a-z0-9]+)$/gm), ([, pack = ""]) => pack);
}

/** A copy of an example with the packs that its README adds. The packs' states and orchestrations stand in the project's folders too, where checks read them. */
export function openExample(name: string): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "kcore-example-"));
  cpSync(exampleFolder(name), path, { recursive: true });
  for (const pack of packsOf(name)) {
    const from = join(examples, "../packs", pack);
    cpSync(from, join(path, "packs", pack), { recursive: true });
    for (const kind of ["states", "orchestrate"]) cpSync(join(from, kind), join(path, kind, pack), { recursive: true });
  }
  return { path, remove: () => rmSync(path, { recursive: true }) };
}

/** The texts of an example's states, those of its packs among them. */
export function statesOf(name: string): readonly string[] {
  const folders = [exampleFolder(name), ...packsOf(name).map((pack) => join(examples, "../packs", pack))];
  return folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => /^states\/.*\.yaml$/.test(file))
      .map((file) => readFileSync(join(folder, file), "utf8")),
  );
}

/** The titles of the steps that were neither in order nor skipped. */
export function stepsNotInOrder(events: readonly RunEvent[]): readonly string[] {
  return events.flatMap((event) =>
    event.type === "step.finished" && !["ok", "skipped"].includes(event.outcome) ? [event.title] : [],
  );
}
