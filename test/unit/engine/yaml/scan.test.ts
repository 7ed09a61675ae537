import { expect } from "chai";
import { SourceFile } from "#engine/yaml/file.ts";
import { tokenize } from "#engine/yaml/scan.ts";
import { problemsIn } from "#support/problems.ts";

/** Texts with a scalar or nothing inside this number of levels of lists or maps. */
const nested: Readonly<Record<string, (levels: number) => string>> = {
  "block lists": (levels) => `${"- ".repeat(levels)}x\n`,
  "block maps": (levels) => `${Array.from({ length: levels }, (_, level) => `${" ".repeat(level)}a:`).join("\n")} x\n`,
  "flow lists": (levels) => `${"[".repeat(levels)}x${"]".repeat(levels)}\n`,
  "empty flow lists": (levels) => `${"[".repeat(levels)}${"]".repeat(levels)}\n`,
  "flow maps": (levels) => `${"{a: ".repeat(levels)}x${"}".repeat(levels)}\n`,
};

describe("tokenize", () => {
  for (const [shape, textOf] of Object.entries(nested))
    it(`accepts 64 levels of ${shape} and refuses 65 (S-18)`, () => {
      expect(() => tokenize(new SourceFile("f.yaml", textOf(64)))).not.to.throw();
      const problems = problemsIn(() => tokenize(new SourceFile("f.yaml", textOf(65))));
      expect(problems).to.have.lengthOf(1);
      expect(problems[0]).to.include("lists and maps are nested more than 64 levels deep [YAML_TOO_DEEP]");
    });
});
