import { expect } from "chai";
import { githubLine } from "#cli/check/ci-formats.ts";

const problem = { code: "YAML_TYPE", message: "“a” is wrong" } as const;

describe("kcore check -o github", () => {
  it("names the file from the repository's root, line and columns", () => {
    const at = { file: "states/web.yaml", line: 3, column: 7, length: 4 };
    expect(githubLine({ ...problem, at, hint: "write b" }, "/repo/dc1", "/repo")).to.equal(
      "::error file=dc1/states/web.yaml,line=3,col=7,endColumn=11,title=YAML_TYPE::“a” is wrong%0Awrite b",
    );
  });

  it("lets nothing in a name or message end it or begin another", () => {
    const at = { file: "states/a,b:c.yaml", line: 1, column: 1 };
    expect(githubLine({ ...problem, message: "100%\r\n::set-env", at }, "/p", "/p")).to.equal(
      "::error file=states/a%2Cb%3Ac.yaml,line=1,col=1,title=YAML_TYPE::100%25\\x0d%0A::set-env",
    );
    expect(githubLine(problem, "/p", "/p")).to.equal("::error title=YAML_TYPE::“a” is wrong");
  });
});
