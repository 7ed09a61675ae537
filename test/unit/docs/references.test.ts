import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";

const root = join(import.meta.dirname, "../../..");
const under = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(?:tsx?|sh|cjs|md|yaml|hbs)$/.test(name) && !name.includes("node_modules"))
    .map((name) => join(folder, name));
const code = ["src", "test", "scripts", "bench", "states", "orchestrate", "templates"].flatMap(under);
const pages = [...under("docs"), "README.md", "CONTRIBUTING.md", "CHANGELOG.md"];
const read = (file: string): string => readFileSync(join(root, file), "utf8");
/** Files that a CI's jobs write, as in docs/ci.md. */
const written = /^(?:(?:report\/)?(?:plan|deploy|drift)|FILE)\.md$/;
const placesOf = (files: readonly string[], pattern: RegExp): { file: string; line: number; name: string }[] =>
  files.flatMap((file) =>
    read(file)
      .split("\n")
      .flatMap((text, index) => [...text.matchAll(pattern)].map(([name]) => ({ file, line: index + 1, name }))),
  );

describe("what code and pages refer to", () => {
  it("is a page of the repository: from the code by its path from the top", () => {
    const named = placesOf(code, /(?<![\w/.*-])[\w./-]+\.md\b/g);
    expect(named.length).to.be.greaterThan(20);
    // Pages that `kcore init` writes, one of Handlebars, and the second word of a join.
    const elsewhere =
      /^(?:project\/)?(?:orchestrate|states|templates)\/README\.md$|^docs\/compiler-api\.md$|^performance\.md$/;
    const isThere = ({ file, name }: { file: string; name: string }): boolean =>
      existsSync(join(root, name)) || (name.startsWith("../") && existsSync(join(root, dirname(file), name)));
    const isKnown = (name: string): boolean => elsewhere.test(name) || written.test(name);
    expect(named.filter((place) => !isThere(place) && !isKnown(place.name))).to.deep.equal([]);
  });

  it("is a page of the repository: from a page by its place beside it", () => {
    // A link's text may be shorter than its target.
    const named = placesOf(pages, /(?<![\w/.*-])[\w./-]+\.md\b(?!\])/g);
    const isThere = ({ file, name }: { file: string; name: string }): boolean =>
      existsSync(join(root, dirname(file), name)) || existsSync(join(root, name));
    expect(named.filter((place) => !isThere(place) && !written.test(place.name))).to.deep.equal([]);
  });

  it("is a decision that there is", () => {
    const numbers = new Set(readdirSync(join(root, "docs/adr")).map((name) => `ADR ${name.slice(0, 4)}`));
    expect(placesOf([...code, ...pages], /\bADR \d{4}\b/g).filter(({ name }) => !numbers.has(name))).to.deep.equal([]);
  });

  it("is a promise that docs/security.md lists, and each of these is kept by a test or says why not", () => {
    const list = read("docs/security.md").split("<!-- promises")[1] ?? "";
    const items = [...list.matchAll(/^- \*\*([SF]-\d+)\*\* .*\n(?: {2}.*\n)*/gm)];
    const listed = items.map(([, number]) => number);
    const inOrder = (letter: string, count: number): string[] =>
      Array.from({ length: count }, (_, index) => `${letter}-${index + 1}`);
    expect(listed).to.deep.equal([...inOrder("S", 27), ...inOrder("F", 31)]);
    const named = placesOf(code, /\b[SF]-\d+\b/g);
    expect(named.length).to.be.greaterThan(100);
    expect(named.filter(({ name }) => !listed.includes(name))).to.deep.equal([]);
    const untested = items.filter(([item]) => !item.includes("\n  Tests: ")).map(([, number]) => number);
    // A promise that something is not offered has no test.
    expect(untested).to.deep.equal(["S-13"]);
  });
});
