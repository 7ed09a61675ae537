import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { actionNames, findAction } from "#actions/registry.ts";
import { registry } from "#engine/modules/registry.ts";
import { checkProject } from "#engine/orchestrate/check-project.ts";
import { openOwnModules } from "#engine/own-modules/open-modules.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { exampleFolder, exampleNames, openExample, statesOf } from "#support/examples.ts";

/** The commands that an example's states need beside modules. */
const commands = {
  k3s: ['command.run: { argv: [mountpoint, -q, "/mnt/longhorn/{{item.serial}}"], check: true }'],
  metalk8s: ["script.run: source: scripts/join-etcd.sh"],
  web: [],
} as const;

describe("the projects of examples/", () => {
  for (const [name, needed] of Object.entries(commands))
    it(`${name}: needs no command but ${needed.length}`, () => {
      const found = statesOf(name).flatMap((text) => text.match(/(command|script)\.run:.*\n.*/g) ?? []);
      expect(found.map((text) => text.replace(/\s+/g, " ").trim())).to.deep.equal(needed);
    });
  for (const name of exampleNames) {
    const project = exampleFolder(name);
    let copy: ReturnType<typeof openExample>;
    before(() => (copy = openExample(name)));
    after(() => copy.remove());

    it(`${name}: is in order as it stands there`, async () => {
      const places = { project: copy.path, shipped: shippedRoot() };
      const own = openOwnModules(places);
      for (const one of own.names) own.loadBeside(registry, one);
      const modules = own.beside(registry);
      const { problems } = await checkProject({ ...places, actions: findAction, actionNames, modules });
      expect(problems).to.deep.equal([]);
    });

    it(`${name}: git shows nothing of what following its README makes (G7)`, () => {
      const ignored = readFileSync(join(project, ".gitignore"), "utf8").split("\n");
      const texts = readdirSync(copy.path, { recursive: true, encoding: "utf8" })
        .filter((file) => /\.(md|yaml)$/.test(file) && !file.startsWith(".kcore/"))
        .map((file) => readFileSync(join(copy.path, file), "utf8"));
      // Secret files that the roster refers to, and files that actions write.
      const files = texts.flatMap((text) => [
        ...[...text.matchAll(/: file:([\w./-]+)/g)].map(([, file = ""]) => file),
        ...[
          ...text.matchAll(
            /run: (?:kubernetes\.\w*[kK]ubeconfig|local\.file)\n(?: +\w+: .*\n)*? +(?:file|path): (\S+)/g,
          ),
        ].map(([, file = ""]) => file),
      ]);
      const made = [...new Set(files)];
      const isKept = (file: string) =>
        ignored.some((line) => line === file || (line.endsWith("/") && file.startsWith(line)));
      expect([...made, ".kcore/runs"].filter((file) => !isKept(file))).to.deep.equal([]);
      expect(made.length).to.equal(
        new Map([
          ["k3s", 1],
          ["metalk8s", 2],
        ]).get(name) ?? 0,
      );
    });

    it(`${name}: its README tells each of its files, and no other`, () => {
      const told = Array.from(
        readFileSync(join(project, "README.md"), "utf8").matchAll(/^\| `([\w.][\w./*-]+)`/gm),
        ([, path = ""]) => path,
      );
      const files = readdirSync(project, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name !== "README.md")
        .map((entry) => join(entry.parentPath, entry.name).slice(project.length + 1))
        // kcore's own records of runs.
        .filter((path) => !path.startsWith(".kcore/"));
      const tells = (path: string, file: string): boolean =>
        path.endsWith("*.hbs") ? file.startsWith(path.slice(0, -"*.hbs".length)) : path === file;
      expect(files.filter((file) => !told.some((path) => tells(path, file)))).to.deep.equal([]);
      expect(told.filter((path) => !files.some((file) => tells(path, file)))).to.deep.equal([]);
    });
  }
});
