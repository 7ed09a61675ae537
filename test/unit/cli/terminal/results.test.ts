import { expect } from "chai";
import { parse } from "yaml";
import { formatOne, formatResult } from "#cli/terminal/format-result.ts";
import { printJson } from "#cli/terminal/print-json.ts";
import { createRedraw } from "#cli/terminal/redraw.ts";
import { toStderr } from "#cli/terminal/say.ts";
import { FakeTerminal } from "#support/fake-terminal.ts";

describe("results as JSON", () => {
  it("S-4: have no control characters or GitHub workflow commands, and parse to the same value", () => {
    const value = {
      "a##[k": ["##[error]x", "###[", "a\n::set-env name=a::b", `${"long ".repeat(20)}\n\n  ::error::x\n`],
      "k\u009b": ["\u001b[2J\u009b2J\u007f", "right \u202eleft\u2028"],
    };
    const formats = ["json", "yaml"] as const;
    for (const text of [
      printJson(value),
      ...formats.flatMap((format) => [formatOne(value, format), formatResult(value, format, () => "")]),
    ]) {
      // oxlint-disable-next-line no-control-regex -- finding control characters is the purpose
      expect(text).not.to.match(/##\[|^\s*::|[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]/m);
      expect(parse(text)).to.deep.equal(value);
    }
  });
});

describe("text of nodes and controllers", () => {
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

  it("is shown on stderr without control characters and workflow commands", () => {
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

  it("is shown without workflow commands in tables, and unchanged in JSON", () => {
    const value = { text: "##[error]" };
    expect(formatResult(value, "table", () => "a ##[error]\n::error::b\n")).to.equal("a ## [error]\n: :error::b\n");
    expect(JSON.parse(formatResult(value, "json", () => ""))).to.deep.equal(value);
  });

  it("is shown without control characters above a drawing that is redrawn", () => {
    const terminal = new FakeTerminal(80, 24);
    createRedraw(terminal.stdout)(["row"], "a\u001B[2Jb");
    expect(terminal.written).to.equal("ab\nrow\n");
  });
});
