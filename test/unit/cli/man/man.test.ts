import { spawnSync } from "node:child_process";
import { expect } from "chai";
import { Command } from "commander";
import { commandTree, manPage, pageName } from "#cli/man/man-command.ts";
import { buildProgram } from "#cli/program.ts";

/** The page as groff formats it for a terminal, with groff's warnings. */
function format(page: string): { readonly text: string; readonly warnings: string } {
  const { stdout, stderr, error } = spawnSync("groff", ["-man", "-Tascii", "-P-cbou", "-ww"], {
    input: page,
    encoding: "utf8",
  });
  if (error) throw error;
  return { text: stdout, warnings: stderr };
}

describe("man pages", () => {
  it("have no warnings of groff", async () => {
    const pages = [...commandTree(await buildProgram(["man"]))].map((command) => manPage(command, "1.2.3"));
    expect(pages.length).to.be.above(80);
    expect(format(pages.join("\n")).warnings).to.equal("");
  });

  it("have the summary, options and examples of the help", async () => {
    const apply = [...commandTree(await buildProgram(["man"]))].find(
      (one) => pageName(one) === "kcore-state-apply",
    ) as Command;
    const { text } = format(manPage(apply, "1.2.3"));
    for (const { long } of apply.options) expect(text).to.contain(long);
    expect(text)
      .to.match(/^NAME\n +kcore-state-apply - /m)
      .and.to.match(/^EXAMPLES\n +kcore state apply/m);
    expect(text).to.match(/^SEE ALSO\n +kcore-state\(1\)/m);
  });

  it("escape backslashes, dots and dashes", () => {
    const odd = new Command("odd").description(
      ".TH is no request, nor is\n'this; a \\fBback slash\\fR stays, and --dashes",
    );
    const { text, warnings } = format(manPage(odd, "1"));
    expect(warnings).to.equal("");
    expect(text.replaceAll(/\s+/g, " ")).to.contain(
      ".TH is no request, nor is 'this; a \\fBback slash\\fR stays, and --dashes",
    );
  });
});
