import { spawnSync } from "node:child_process";
import { expect } from "chai";
import { ereFinds } from "#engine/step/ere.ts";

const lines = ["a b", "PermitRootLogin yes", "#x = 1", String.raw`a\b`, "a]b", "A-Z", "x{2}", "aab", "tab\there"];
const patterns = [
  "^#?PermitRootLogin[[:blank:]]+(yes|no)$",
  "^[^#[:space:]]+ ",
  String.raw`[\]`,
  "[]]",
  "[^]a]",
  String.raw`x\{2\}`,
  "a{2}b",
  String.raw`^a\.`,
  "[A-C-]-",
  "[[:punct:]]",
  "^[[:upper:]]",
  "[[:blank:]]here",
];

describe("ereFinds", () => {
  it("agrees with grep -E", () => {
    for (const pattern of patterns)
      for (const line of lines) {
        const { status } = spawnSync("grep", ["-qE", "-e", pattern], { input: `${line}\n`, env: { LC_ALL: "C" } });
        expect(ereFinds(pattern, line), `${pattern} in ${line}`).to.equal(status === 0);
      }
  });

  it("returns undefined for patterns and texts outside the POSIX locale", () => {
    const undecided = [
      String.raw`\bword`,
      String.raw`\<a`,
      "é",
      "(?:a)",
      "a**",
      "a{x",
      "[[=a=]]",
      "[[:word:]]",
      "(a",
      "[a",
    ];
    for (const pattern of undecided) expect(ereFinds(pattern, "a"), pattern).to.equal(undefined);
    expect(ereFinds("a", "é")).to.equal(undefined);
  });

  it("returns undefined for a pattern that takes too long", () => {
    for (const pattern of ["^(a+)+$", "^(a|a)*$", "^(([a-z])+.)+[A-Z]$"])
      expect(ereFinds(pattern, `${"a".repeat(60)}!`), pattern).to.equal(undefined);
  });
});
