import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { TestProject } from "#support/kcore.ts";

/** The file with the mistake, and the command that reads it, for each kind of file. */
const kinds = {
  state: { file: "states/bad.yaml", words: "state apply bad --on here" },
  roster: { file: "roster/more.yaml", words: "roster check" },
  orchestration: { file: "orchestrate/bad.yaml", words: "orchestrate bad" },
} as const;
const kindNames = ["state", "roster", "orchestration"] as const;

interface Mistake extends Partial<Readonly<Record<keyof typeof kinds, string>>> {
  readonly what: string;
  readonly files?: Readonly<Record<string, string>>;
  /** Files written in Latin-1. */
  readonly latin1?: Readonly<Record<string, string>>;
  readonly words?: string | readonly string[];
  /** The whole output: message, code, place, line and hint. */
  readonly says: string;
}

const fixture = join(import.meta.dirname, "../../fixtures/mistakes.yaml");
const mistakes = (parse(readFileSync(fixture, "utf8")) as readonly Mistake[]).map((mistake) => {
  const kind = kindNames.find((name) => mistake[name] !== undefined);
  return kind ? { ...mistake, files: { [kinds[kind].file]: mistake[kind] ?? "" }, words: kinds[kind].words } : mistake;
});
const written = "/tmp/kcore-bad-input";
const good = `steps:\n  - id: written\n    file.managed: { path: ${written}, content: x }\n`;

describe("kcore given invalid input", () => {
  it("has a table of at least 60 mistakes with distinct names", () => {
    expect(new Set(mistakes.map(({ what }) => what)).size)
      .to.equal(mistakes.length)
      .and.be.at.least(60);
  });

  for (const { what, files = {}, latin1 = {}, words = [], says } of mistakes)
    it(`reports ${what}: message, place and hint`, async () => {
      const project = new TestProject({ "states/good.yaml": good, ...files });
      try {
        for (const [name, text] of Object.entries(latin1))
          writeFileSync(join(project.project, name), Buffer.from(text, "latin1"));
        const { code, stdout, stderr } = await project.call(typeof words === "string" ? words.split(" ") : words);
        expect((stdout + stderr).replaceAll(project.path, "HOME")).to.equal(says);
        expect([code, existsSync(written), says.includes("hunter2")]).to.deep.equal([2, false, false]);
      } finally {
        await project.remove();
      }
    });
});
