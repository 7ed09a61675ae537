import { expect } from "chai";
import { looksLikeRun } from "#cli/process/warm-process.ts";

describe("a run's process that starts before the command line is parsed", () => {
  const cases: readonly (readonly [string, boolean])[] = [
    ["state apply web --on n1 -- -h", true],
    ["exec --on n1 -- ls", false],
    ["ping --on n1", false],
    ["state apply web --on n1", true],
    ["state apply -h", false],
    ["state list", false],
    ["state", false],
    ["orchestrate roll_out n1", true],
    ["orchestrate", false],
    ["runs list", false],
    ["", false],
  ];
  for (const [words, expected] of cases)
    it(`is ${expected ? "" : "not "}started for “kcore ${words}”`, () =>
      expect(looksLikeRun(words.split(" "))).to.equal(expected));
});
