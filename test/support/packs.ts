import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = join(import.meta.dirname, "../../packs");

/** Copies packs of this repository into a project, as `kcore pack add` does; without `project` into a new one with one node. */
export function addPacks(
  names: readonly string[],
  project?: string,
): { readonly path: string; readonly remove: () => void } {
  const path = project ?? mkdtempSync(join(tmpdir(), "kcore-packs-"));
  for (const name of names) {
    const own = /^name: (\w+)$/m.exec(readFileSync(join(folder, name, "pack.yaml"), "utf8"))?.[1] ?? "";
    cpSync(join(folder, name), join(path, "packs", own), { recursive: true });
  }
  if (project === undefined) {
    for (const each of ["roster", "orchestrate"]) mkdirSync(join(path, each));
    const states = readdirSync(join(path, "packs"), { recursive: true, encoding: "utf8" }).flatMap(
      (file) => /^(\w+)\/states\/(\w+)\.yaml$/.exec(file)?.slice(1).join("/") ?? [],
    );
    // States of packs are checked where an orchestration applies them.
    const stages = states.map((state, index) => `  - { id: s${index}, on: "*", apply: [${state}] }\n`);
    writeFileSync(join(path, "orchestrate/all.yaml"), `stages:\n${stages.join("")}`);
    writeFileSync(join(path, "roster/nodes.yaml"), "nodes:\n  n1: { address: 192.0.2.1, roles: [controller] }\n");
  }
  return { path, remove: () => rmSync(path, { recursive: true }) };
}
