import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { actionNames } from "#actions/registry.ts";
import { AgentConfig } from "#agent/agent-config.ts";
import { ControllerConfig } from "#controller/controller-config.ts";
import { NodeSchema } from "#engine/roster/entry-schema.ts";
import { STAGE_KEYS } from "#engine/orchestrate/stage-shape.ts";
import { STEP_KEYS } from "#engine/states/step-source.ts";
import { factAt } from "#engine/facts/paths.ts";
import { helpers } from "#engine/expressions/helpers.ts";
import { registry } from "#engine/modules/registry.ts";
import { errorCodes, readPages, root, type Page } from "#support/pages.ts";

const pages = readPages();
const source = globSync(
  ["src/**/*", "templates/*", "bin/*", "scripts/*", "bench/**/*", "test/**/*.ts", "examples/**/*.sh"],
  { cwd: root },
)
  // Installed packages of a bench are no sources of ours.
  .filter((name) => /\.(ts|cjs|js|sh|hbs)$|^bin\//.test(name) && !/^test\/unit\/docs\/|\/node_modules\//.test(name))
  .map((name) => readFileSync(join(root, name), "utf8"))
  .join("\n");
const codes = new Set(errorCodes());

/** The heading `## How it is tested` has the anchor `#how-it-is-tested`. */
function anchorsOf({ prose }: Page): readonly string[] {
  return prose
    .filter(({ text }) => /^#+ /.test(text))
    .map(({ text }) =>
      text
        .replace(/^#+ /, "")
        .toLowerCase()
        .replaceAll(/[^\w\s-]/g, "")
        .replaceAll(" ", "-"),
    );
}

/** The cells of a table's rows; a bar within code does not divide cells. */
function cellsOf(row: string): readonly string[] {
  return row
    .replaceAll("\\|", "")
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

/** The rows of the table below a heading: their cells, and the text between backticks in the first cell. */
function rowsBelow(name: string, heading: string): readonly { names: readonly string[]; cells: readonly string[] }[] {
  const { prose = [] } = pages.find((page) => page.name === name) ?? {};
  const from = prose.findIndex(({ text }) => text.startsWith(heading));
  expect(from, `${name}: ${heading}`).to.be.at.least(0);
  const start = prose.findIndex(({ text }, index) => index >= from && text.startsWith("|"));
  const end = prose.findIndex(({ text }, index) => index > start && !text.startsWith("|"));
  return prose.slice(start + 2, end < 0 ? undefined : end).map(({ text }) => {
    const cells = cellsOf(text);
    return { cells, names: Array.from((cells[0] ?? "").matchAll(/`([^`]+)`/g), ([, span = ""]) => span) };
  });
}
const namesBelow = (name: string, heading: string) => rowsBelow(name, heading).flatMap(({ names }) => names);

describe("what README and docs name", () => {
  it("links to files and headings that are there", () => {
    const broken = pages.flatMap((page) =>
      page.prose.flatMap(({ text, line }) =>
        Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, link = ""]) => link)
          .filter((link) => !/^https?:/.test(link) && !isThere(page, link))
          .map((link) => `${page.name}:${line} ${link}`),
      ),
    );
    expect(broken).to.deep.equal([]);
  });

  function isThere(page: Page, link: string): boolean {
    const [path = "", anchor] = link.split("#");
    const file = path === "" ? page.name : join(dirname(page.name), path);
    const target = pages.find(({ name }) => name === file);
    return existsSync(join(root, file)) && (anchor === undefined || anchorsOf(target ?? page).includes(anchor));
  }

  it("every page in docs/README.md", () => {
    const list = pages.find(({ name }) => name === "docs/README.md")?.text ?? "";
    const beside = pages.filter(({ name }) => /^docs\/[\w-]+\.md$/.test(name) && name !== "docs/README.md");
    expect(beside.filter(({ name }) => !list.includes(`](${name.slice(5)})`)).map(({ name }) => name)).to.deep.equal(
      [],
    );
  });

  it("paths of this repository that are there", () => {
    const shown = new Set(
      pages.flatMap(({ blocks }) => blocks.map(({ text }) => /^# (\S+\.yaml)$/m.exec(text)?.[1] ?? "")),
    );
    const gone = pages.flatMap(({ name, text }) =>
      Array.from(
        text.matchAll(/(?<![\w./-])(?:src|test|scripts|bench|docs|states\/kcore)\/[\w./-]*\w/g),
        ([path]) => path,
      )
        .filter((path) => !shown.has(path) && !existsSync(join(root, path)))
        .map((path) => `${name} ${path}`),
    );
    expect(gone).to.deep.equal([]);
  });

  it("tables whose rows have as many cells as their heading", () => {
    const odd = pages.flatMap(({ name, prose }) =>
      prose.flatMap(({ text, line }, index) => {
        if (!text.startsWith("|")) return [];
        const first = prose.slice(0, index).findLastIndex((row) => !row.text.startsWith("|")) + 1;
        const heading = cellsOf(prose[first]?.text ?? "").length;
        return cellsOf(text).length === heading ? [] : [`${name}:${line}`];
      }),
    );
    expect(odd).to.deep.equal([]);
  });

  it("environment variables that the code reads, and codes and alarms that it gives", () => {
    const named = pages.flatMap((page) =>
      page.spans.flatMap(({ at, text }) =>
        Array.from(text.matchAll(/(?<![\w./-])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w*-])/g), ([name]) => ({ at, name })),
      ),
    );
    expect(named.length).to.be.greaterThan(30);
    const isRead = (name: string) => new RegExp(`["\`$ {=]${name}["\`}=\\n: ]`).test(source);
    expect(named.filter(({ name }) => !codes.has(name) && !isRead(name))).to.deep.equal([]);
  });

  it("error codes that are there, where output is shown", () => {
    const shown = pages.flatMap(({ blocks }) =>
      blocks.flatMap(({ at, text }) =>
        Array.from(text.matchAll(/\[([A-Z]+(?:_[A-Z]+)+)\]/g), ([, code = ""]) => ({ at, code })),
      ),
    );
    expect(shown.length).to.be.greaterThan(0);
    expect(shown.filter(({ code }) => !codes.has(code))).to.deep.equal([]);
  });

  it("V11: every error code once in docs/errors.md, and in tables of others none that is not there", () => {
    const codesOf = (name: string) =>
      (pages.find((page) => page.name === name)?.prose ?? [])
        .flatMap(({ text }) => /^\| ([A-Z][A-Z0-9_]+) +\|/.exec(text)?.[1] ?? [])
        .filter((code) => code !== "CODE");
    expect(codesOf("docs/errors.md").toSorted()).to.deep.equal([...codes].toSorted());
    const named = codesOf("docs/troubleshooting.md").filter((code) => code.includes("_"));
    expect(named).not.to.have.length(0);
    expect(named.filter((code) => !codes.has(code))).to.deep.equal([]);
  });

  it("every action, helper and key that there is, and none that is not", () => {
    const helperNames = namesBelow("docs/templates.md", "## Helpers").map((usage) => usage.split(" ")[0] ?? "");
    const same = (found: Iterable<string>, known: Iterable<string>) =>
      expect([...new Set(found)].toSorted()).to.deep.equal([...known].toSorted());
    same(namesBelow("docs/orchestrations.md", "## Actions"), actionNames);
    same(helperNames, helpers.keys());
    same(namesBelow("docs/rosters.md", "| key of a node"), Object.keys(NodeSchema.shape));
    same(
      namesBelow("docs/states.md", "| key "),
      STEP_KEYS.filter((key) => key !== "id"),
    );
    same(namesBelow("docs/orchestrations.md", "| key "), STAGE_KEYS);
    const first = (heading: string) =>
      namesBelow("docs/cluster-reference.md", heading).flatMap((name) =>
        /^(cert|key)File$/.test(name) ? [] : (name.split(".")[0] ?? []),
      );
    same(first("## controller.yaml"), Object.keys(ControllerConfig.shape));
    same(first("## node-agent.yaml"), Object.keys(AgentConfig.shape));
  });

  it("defaults of the daemons' keys as they are", () => {
    const config = { controller: ControllerConfig.parse({}), "node-agent": AgentConfig.parse({}) };
    const told = Object.entries(config).flatMap(([name, parsed]) =>
      rowsBelow("docs/cluster-reference.md", `## ${name}.yaml`).flatMap(({ names, cells }) => {
        const [, value] = /^`([^`{]*)`$/.exec(cells[1] ?? "") ?? [];
        if (names.length !== 1 || value === undefined) return [];
        const path = (names[0] ?? "").split(".");
        return [
          [names[0], value, String(path.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], parsed))],
        ];
      }),
    );
    expect(told.length).to.be.greaterThan(10);
    expect(told.filter(([, shown, real]) => shown !== real)).to.deep.equal([]);
  });

  it("modules by names that there are", () => {
    const families = new Set(Array.from(registry.keys(), (name) => name.split(".")[0]));
    // docs/moving.md alone uses the words of other tools.
    const own = pages.filter(({ name }) => name !== "docs/moving.md");
    const named = own.flatMap(({ spans }) =>
      spans.filter(
        ({ text }) => /^[a-z]+\.[a-z_]+$/.test(text) && families.has(text.split(".")[0]) && factAt(text) === undefined,
      ),
    );
    expect(named.length).to.be.greaterThan(3);
    expect(
      named
        .filter(
          ({ text }) => !registry.has(text) && !actionNames.includes(text) && !/\.(conf|crt|json|key)$/.test(text),
        )
        .map(({ at, text }) => `${at} ${text}`),
    ).to.deep.equal([]);
  });
});
