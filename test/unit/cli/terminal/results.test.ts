import { expect } from "chai";
import { parse } from "yaml";
import { formatOne, formatResult } from "#cli/terminal/format-result.ts";
import { printJson } from "#cli/terminal/print-json.ts";
import { redrawing } from "#cli/terminal/redraw.ts";
import { toStderr } from "#cli/terminal/say.ts";
import { FakeTerminal } from "#support/fake-terminal.ts";

describe("results as JSON", () => {
  it("S-4: writes JSON that reads the same and drives no terminal", () => {
    const value = { "k\u009b": ["\u001b[2J\u009b2J\u007f", "right \u202eleft\u2028"] };
    const text = printJson(value, 2);
    // oxlint-disable-next-line no-control-regex -- finding control characters is the purpose
    expect(text).not.to.match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]/);
    expect(JSON.parse(text)).to.deep.equal(value);
  });

  it("S12: says nothing that GitHub's runner would obey, and the same to who reads it", () => {
    const value = {
      "a##[k": ["##[error]x", "###[", "a\n::set-env name=a::b", `${"long ".repeat(20)}\n\n  ::error::x\n`],
    };
    for (const text of [
      printJson(value),
      printJson(value, 2),
      formatOne(value, "yaml"),
      formatResult(value, "yaml", () => ""),
    ]) {
      expect(text).not.to.match(/##\[|^\s*::/m);
      expect(parse(text)).to.deep.equal(value);
    }
  });

  it("S-4: formats results of every kind so", () => {
    for (const text of [
      formatResult({ a: "\u009b2J\u202e" }, "json", () => ""),
      formatResult({ a: "\u009b2J\u202e" }, "yaml", () => ""),
      formatOne({ a: "\u009b2J\u202e" }, "json"),
      formatOne({ a: "\u009b2J\u202e" }, "yaml"),
    ])
      expect(text).to.match(/a"?: ?"\\u009b2J\\u202e"/);
  });
});

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
