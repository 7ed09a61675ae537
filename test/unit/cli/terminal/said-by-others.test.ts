import { expect } from "chai";
import { formatResult } from "#cli/terminal/format-result.ts";
import { redrawing } from "#cli/terminal/redraw.ts";
import { toStderr } from "#cli/terminal/say.ts";
import { FakeTerminal } from "#support/fake-terminal.ts";

describe("what nodes and controllers say", () => {
  const evil = "n1\u001B[2J: ##[error]x\n::stop-commands::y";
  let before: string | undefined;

  beforeEach(() => {
    before = process.env["GITHUB_ACTIONS"];
    process.env["GITHUB_ACTIONS"] = "true";
  });
  afterEach(() => {
    if (before === undefined) delete process.env["GITHUB_ACTIONS"];
    else process.env["GITHUB_ACTIONS"] = before;
  });

  it("drives neither a terminal nor GitHub's runner by a word on stderr", () => {
    const write = process.stderr.write.bind(process.stderr);
    let written = "";
    process.stderr.write = (text) => (written += String(text)) !== "";
    try {
      toStderr(evil);
    } finally {
      process.stderr.write = write;
    }
    expect(written).to.equal("n1: ## [error]x\n: :stop-commands::y\n");
  });

  it("speaks to no runner of GitHub's out of a result for people; data stays what it is", () => {
    const value = { text: "##[error]" };
    expect(formatResult(value, "table", () => "a ##[error]\n::error::b\n")).to.equal("a ## [error]\n: :error::b\n");
    expect(JSON.parse(formatResult(value, "json", () => ""))).to.deep.equal(value);
  });

  it("drives no terminal above what is drawn anew", () => {
    const terminal = new FakeTerminal(80, 24);
    redrawing(terminal.stdout)(["row"], "a\u001B[2Jb");
    expect(terminal.written).to.equal("ab\nrow\n");
  });
});
