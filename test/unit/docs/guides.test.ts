import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { findAction } from "#actions/registry.ts";
import { registry } from "#engine/modules/registry.ts";
import { root } from "#support/pages.ts";

const read = (name: string): string => readFileSync(join(root, name), "utf8");
const pages = ["docs/guides/README.md", ...globSync("packs/*/README.md", { cwd: root })];
/** The rows of the tables: line, state, the counterpart. */
const rows = Array.from(
  read("docs/guides/README.md").matchAll(
    /^\| ([MKC]\d+) +\| .*? +\| (whole|in part|not there|not needed) +\| (.*?) +\|$/gm,
  ),
  ([, line = "", state = "", ours = ""]) => ({ line, state, ours }),
);
/** The folder of each pack, by its name. */
const packs = new Map(
  globSync("packs/*", { cwd: root }).map((folder) => [/^name: (\w+)/.exec(read(`${folder}/pack.yaml`))?.[1], folder]),
);

/** Whether the repository has a state or an orchestration of this name: a shipped one, a pack's, or an example's. */
function isThere(kind: "states" | "orchestrate", name: string): boolean {
  const [pack = "", ...rest] = name.split("/");
  const places = [`${kind}/${name}.yaml`, `examples/*/${kind}/${name}.yaml`];
  return globSync([...places, `${packs.get(pack)}/${kind}/${rest.join("/")}.yaml`], { cwd: root }).length > 0;
}

/** The names that a page has, and neither the repository nor the folder beside the page. */
async function unknownIn(text: string, beside = "."): Promise<readonly string[]> {
  const all = (pattern: RegExp): readonly string[] => Array.from(text.matchAll(pattern), ([, name = ""]) => name);
  const actions = await Promise.all(
    all(/`((?:kubernetes|secret|pki)\.\w+)`/g).map(async (name) => ((await findAction(name)) ? [] : [name])),
  );
  return [
    ...all(/kcore orchestrate ([\w/-]+)/g).filter((name) => !isThere("orchestrate", name)),
    ...all(/kcore state apply ([\w/-]+)/g).filter((name) => !isThere("states", name)),
    ...all(/(?:--set leave=|leave: \{ state: )([\w/]+)/g).filter((name) => !isThere("states", name)),
    ...all(/`((?:examples|packs|states|orchestrate)\/[\w./-]+)`/g).filter(
      (path) => !existsSync(join(root, path)) && !existsSync(join(root, beside, path)),
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
    expect(rows.filter(({ state, ours }) => state === "not there" && !/^because \w/.test(ours))).to.deep.equal([]);
    expect(rows.filter(({ state, ours }) => state === "in part" && !/[;,.] \w/.test(ours))).to.deep.equal([]);
  });

  for (const name of pages)
    it(`${name} names orchestrations, states, files, actions and modules that are there`, async () => {
      // A folder of packs of another repository in an address is none of this one; a page may define a state of its own.
      const own = Array.from(read(name).matchAll(/^# states\/([\w-]+)\.yaml$/gm), ([, state]) => state);
      const unknown = await unknownIn(read(name).replaceAll(/^kcore pack add .*$/gm, ""), dirname(name));
      expect(unknown.filter((one) => !own.includes(one))).to.deep.equal([]);
    });

  it("refuse what is not there: a gate that cannot fail is none", async () => {
    const wrong = "`kcore orchestrate etcd/nothing`, kcore state apply none, `packs/k3s/none.yaml`, `pki.none`";
    expect(await unknownIn(wrong)).to.deep.equal(["etcd/nothing", "none", "packs/k3s/none.yaml", "pki.none"]);
  });
});
