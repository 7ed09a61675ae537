import { expect } from "chai";
import { drawProblem, drawProblems } from "#errors/draw.ts";

const at = { file: "states/web.yaml", line: 12, column: 5, length: 14 };
const problem = {
  code: "YAML_TYPE",
  message: "no state module “servce.running”",
  at,
  hint: "did you mean “service.running”?",
} as const;

describe("drawProblem", () => {
  it("shows the place, the line with a caret, and the hint", () =>
    expect(drawProblem(problem, { sourceLine: () => "    servce.running:" })).to.equal(
      [
        "states/web.yaml:12:5  no state module “servce.running”  [YAML_TYPE]",
        "   12 |     servce.running:",
        "      |     ^^^^^^^^^^^^^^",
        "  hint: did you mean “service.running”?",
      ].join("\n"),
    ));

  it("omits a source line that cannot be read", () =>
    expect(drawProblem(problem, { sourceLine: () => undefined })).to.not.contain("|"));

  it("indents details, and has colours only if requested", () => {
    const drawn = drawProblem({ code: "INTERNAL", message: "x", detail: "one\ntwo\n" });
    expect(drawn).to.equal("x  [INTERNAL]\n  | one\n  | two");
    expect(drawProblem(problem, { color: true })).to.contain("\u001b[31m");
  });

  it("S-4: has no control characters", () => {
    const drawn = drawProblem({ code: "INTERNAL", message: "\u001b[2J", detail: "\u001b]0;x\u0007", hint: "\u0007" });
    // oxlint-disable-next-line no-control-regex -- the test proves that there are none
    expect(drawn).to.not.match(/[\u0000-\u0009\u000b-\u001f]/);
  });

  it("counts several problems", () => expect(drawProblems([problem, problem])).to.match(/\n\n2 problems$/));
});
