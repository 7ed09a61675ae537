import { expect } from "chai";
import { githubLine, gitlabReport } from "#cli/check/ci-formats.ts";

interface Entry {
  readonly description: string;
  readonly fingerprint: string;
  readonly location: { readonly path: string; readonly lines: { readonly begin: number } };
}

const problem = { code: "YAML_TYPE", message: "“a” is wrong" } as const;
const at = (line: number) => ({ file: "states/web.yaml", line, column: 7 });
const read = (...given: Parameters<typeof gitlabReport>): readonly Entry[] =>
  JSON.parse(gitlabReport(...given)) as readonly Entry[];

describe("kcore check -o gitlab", () => {
  it("names the file from the repository's root, the line, the code and the hint", () => {
    const [entry] = read([{ ...problem, at: at(3), hint: "write b" }], "/repo/dc1", "/repo");
    expect(entry).to.deep.include({
      description: "“a” is wrong (write b)",
      check_name: "YAML_TYPE",
      severity: "major",
      location: { path: "dc1/states/web.yaml", lines: { begin: 3 } },
    });
  });

  it("keeps a problem's fingerprint when its line moves, and gives equal problems of a file different ones", () => {
    const prints = (lines: readonly number[]): readonly string[] =>
      read(
        lines.map((line) => ({ ...problem, at: at(line) })),
        "/p",
        "/p",
      ).map(({ fingerprint }) => fingerprint);
    expect(prints([3, 9])).to.deep.equal(prints([5, 11]));
    expect(new Set(prints([3, 9]))).to.have.length(2);
  });

  it("is an empty list without problems, and places a problem without a file at the roster", () => {
    expect(read([], "/p", "/p")).to.deep.equal([]);
    expect(read([problem], "/p", "/p")[0]?.location).to.deep.equal({ path: "roster", lines: { begin: 1 } });
  });
});

describe("kcore check -o github", () => {
  it("names the file from the repository's root, the line and the columns", () => {
    const at = { file: "states/web.yaml", line: 3, column: 7, length: 4 };
    expect(githubLine({ ...problem, at, hint: "write b" }, "/repo/dc1", "/repo")).to.equal(
      "::error file=dc1/states/web.yaml,line=3,col=7,endColumn=11,title=YAML_TYPE::“a” is wrong%0Awrite b",
    );
  });

  it("escapes characters of names and messages that end a workflow command", () => {
    const at = { file: "states/a,b:c.yaml", line: 1, column: 1 };
    expect(githubLine({ ...problem, message: "100%\r\n::set-env", at }, "/p", "/p")).to.equal(
      "::error file=states/a%2Cb%3Ac.yaml,line=1,col=1,title=YAML_TYPE::100%25\\x0d%0A::set-env",
    );
    expect(githubLine(problem, "/p", "/p")).to.equal("::error title=YAML_TYPE::“a” is wrong");
  });
});
