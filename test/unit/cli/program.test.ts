import { expect } from "chai";
import { buildProgram } from "#cli/program.ts";
import { KcoreError } from "#errors/problem.ts";

/** The problems of these words as a command line. */
async function refusalOf(...words: readonly string[]) {
  const program = await buildProgram(words);
  const error: unknown = await program.parseAsync(words, { from: "user" }).catch((reason: unknown) => reason);
  return error instanceof KcoreError ? error.problems : error;
}

describe("the command line", () => {
  it("suggests the nearest command or option once, in the hint", async () => {
    expect(await refusalOf("runs", "shwo")).to.deep.equal([
      { code: "USAGE", message: "kcore runs: unknown command “shwo”", hint: "did you mean “show”?" },
    ]);
    expect(await refusalOf("runs", "list", "--fialed")).to.deep.equal([
      { code: "USAGE", message: "kcore runs list: unknown option “--fialed”", hint: "did you mean “--failed”?" },
    ]);
  });

  for (const words of [
    "runs show last --events --node n1",
    "runs show last --events --times",
    "runs show last --html run.html --node n1",
    "runs show last --html run.html --events",
    "state show preflight --set a=b",
    "exec --on n1 --tty -o json -- true",
    "cluster backup --verify x.age --keys-only",
  ])
    it(`refuses a flag that has no effect beside another one: ${words}`, async () => {
      const problems = await refusalOf(...words.split(" "));
      expect(problems).to.be.an("array").with.length(1);
      expect(problems).to.have.nested.property("0.code", "USAGE");
    });
});
