import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { findAction } from "#actions/registry.ts";
import { registry } from "#engine/modules/registry.ts";
import { readPages, root } from "#support/pages.ts";

const pages = [
  ...readPages().filter(({ name }) => name.startsWith("docs/guides/")),
  ...globSync("packs/*/README.md", { cwd: root }).map((name) => ({
    name,
    text: readFileSync(join(root, name), "utf8"),
  })),
];
const table = readFileSync(join(root, "docs/guides/README.md"), "utf8");
/** The rows of the tables: line, theirs, the counterpart. */
const rows = Array.from(
  table.matchAll(/^\| ([MKC]\d+) +\| (.*?) \| (.*?) +\|$/gm),
  ([, line = "", theirs = "", ours = ""]) => ({
    line,
    theirs,
    ours,
  }),
);

/** Whether the repository has a state or an orchestration of this name: a shipped one, a pack's, or an example's. */
function isThere(kind: "states" | "orchestrate", name: string): boolean {
  const [pack, ...rest] = name.split("/");
  return (
    globSync([`${kind}/${name}.yaml`, `examples/*/${kind}/${name}.yaml`], { cwd: root }).length > 0 ||
    existsSync(join(root, `packs/${pack}/${kind}/${rest.join("/")}.yaml`))
  );
}

/** The names that a page has and the repository has not. */
async function unknownIn(text: string): Promise<readonly string[]> {
  const all = (pattern: RegExp): readonly string[] => Array.from(text.matchAll(pattern), ([, name = ""]) => name);
  const actions = await Promise.all(
    all(/`((?:kubernetes|secret|pki)\.\w+)`/g).map(async (name) => ((await findAction(name)) ? [] : [name])),
  );
  return [
    ...all(/kcore orchestrate ([\w/]+)/g).filter((name) => !isThere("orchestrate", name)),
    ...all(/kcore state apply ([\w/]+)/g).filter((name) => !isThere("states", name)),
    ...all(/--set leave=([\w/]+)/g).filter((name) => !isThere("states", name)),
    ...all(/`((?:examples|packs|states|orchestrate)\/[\w./-]+)`/g).filter(
      (path) => !existsSync(join(root, path)) && !isThere("states", path),
    ),
    ...all(/`((?:file|nixos)\.\w+)`/g).filter((name) => !registry.has(name)),
    ...actions.flat(),
  ];
}

describe("the tables of the guides", () => {
  it("have every line of the three guides, in order, each with its counterpart or the reason why there is none", () => {
    const numbers = (letter: string, count: number): readonly string[] =>
      Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);
    expect(rows.map(({ line }) => line)).to.deep.equal([...numbers("M", 36), ...numbers("K", 36), ...numbers("C", 27)]);
    const isAnswer = (ours: string): boolean => /`|\]\(|^not needed|^the |^roles, |^any run/.test(ours);
    expect(rows.filter(({ ours }) => !isAnswer(ours) && !/not there, because \w/.test(ours))).to.deep.equal([]);
    expect(rows.filter(({ ours }) => /not there/.test(ours) && !/not there, because \w/.test(ours))).to.deep.equal([]);
  });

  for (const { name, text } of pages)
    it(`${name} names orchestrations, states, files, actions and modules that are there`, async () => {
      // A folder of packs of another repository in an address is none of this one.
      expect(await unknownIn(text.replaceAll(/^kcore pack add .*$/gm, ""))).to.deep.equal([]);
    });

  it("refuse what is not there: a gate that cannot fail is none", async () => {
    const wrong = "`kcore orchestrate etcd/nothing`, kcore state apply none, `packs/k3s/none.yaml`, `pki.none`";
    expect(await unknownIn(wrong)).to.deep.equal(["etcd/nothing", "none", "packs/k3s/none.yaml", "pki.none"]);
  });
});
