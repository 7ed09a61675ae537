import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
    writeFileSync(join(path, "roster/nodes.yaml"), "nodes:\n  n1: { address: 192.0.2.1, roles: [controller] }\n");
  }
  return { path, remove: () => rmSync(path, { recursive: true }) };
}
