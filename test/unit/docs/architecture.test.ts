import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect } from "chai";

const root = join(import.meta.dirname, "../../..");
const page = readFileSync(join(root, "docs/architecture.md"), "utf8");

interface Rule {
  readonly from: { readonly path?: string };
  readonly to: { readonly path?: string; readonly pathNot?: string };
}
const rules = createRequire(import.meta.url)(join(root, ".dependency-cruiser.cjs")) as { readonly forbidden: Rule[] };

/** The allowed imports of each folder that has a rule, without the folder itself. */
const allowed = new Map(
  rules.forbidden.flatMap(({ from, to }) => {
    const [, folder] = /^\^src\/([\w/-]+)\/$/.exec(from.path ?? "") ?? [];
    const [, list] = /^\^src\/\((.*)\)\/$/.exec(to.pathNot ?? "") ?? [];
    if (folder === undefined || list === undefined || to.path !== "^src/") return [];
    return [
      [folder, list.split("|").filter((name) => name !== folder && !["base", "optional"].includes(name))] as const,
    ];
  }),
);

/** The drawing's folders, by their paths below src, with the folders that they import. */
const drawn = new Map<string, string>();
const path: string[] = [];
for (const line of (page.split("```")[1] ?? "").split("\n").slice(2)) {
  const [, indent = "", name = "", knows = ""] = /^( *)([\w-]+)\/[^←]*(?:← (.*))?$/.exec(line) ?? [];
  if (name === "") continue;
  path.splice(indent.length / 2 - 1);
  path.push(name);
  drawn.set(path.join("/"), knows);
}

const foldersOf = (parent: string): string[] =>
  readdirSync(join(root, "src", parent), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(parent, name));

describe("docs/architecture.md", () => {
  it("draws every folder of src, and none that is not there", () => {
    const top = foldersOf("");
    const there = [...top, ...top.flatMap(foldersOf), ...foldersOf("engine/step")];
    expect([...drawn.keys()].toSorted()).to.deep.equal(there.toSorted());
  });

  it("says what each folder knows as the layers have it", () => {
    const said = [...drawn].filter(([folder, knows]) => knows !== "" && folder !== "cli");
    const words = (list: readonly string[]): string => (list.length === 0 ? "nobody" : list.join(" "));
    expect(Object.fromEntries(said)).to.deep.equal(
      Object.fromEntries([...allowed].map(([folder, list]) => [folder, words(list)])),
    );
  });

  it("names only what is there", () => {
    const named = [...page.matchAll(/`((?:src|test|scripts|docs|bench|states|orchestrate|\.vscode|\.dep)[\w./-]*)`/g)];
    expect(named.length).to.be.greaterThan(60);
    expect(named.map(([, name = ""]) => name).filter((name) => !existsSync(join(root, name)))).to.deep.equal([]);
  });

  it("answers where to change at least ten things", () => {
    const rows = (page.split("## Where do I change")[1]?.split("##")[0] ?? "")
      .split("\n")
      .filter((row) => /^\| [a-z]/.test(row));
    expect(rows.length).to.be.greaterThan(10);
    for (const row of rows.slice(1)) expect(row, row).to.match(/`[\w./-]+`/);
  });
});
