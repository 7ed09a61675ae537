import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";

const motd = `
summary: Keeps a file with one line.
args:
  required: [path, line]
  properties:
    path: { type: string, pattern: ^/, description: The file. }
    line: { type: string, description: The line. }
want: { line: "{{args.line}}" }
probe: |
  line=
  [ ! -f {{args.path}} ] || IFS= read -r line <{{args.path}} || :
  fact line "$line"
apply: printf '%s\\n' {{args.line}} >{{args.path}}
`;

describe("modules of a project's own", () => {
  let project: TestProject;
  let file: string;

  beforeEach(() => {
    project = new TestProject();
    file = join(project.path, "motd");
    project.write({ "project/modules/site.motd.yaml": motd });
  });
  afterEach(() => project.remove());

  function write(args: string): void {
    project.write({ "project/states/motd.yaml": `steps:\n  - id: motd\n    site.motd: ${args}\n` });
  }

  it("are used like shipped ones: dry run, run, nothing the second time", async () => {
    write(`{ path: ${file}, line: it's "kept" }`);
    const words = ["state", "apply", "motd", "--on", "here", "--output", "plain"];
    expect((await project.kcore(...words, "--dry-run")).stdout)
      .to.contain("would change")
      .and.contain(`line`);
    expect(existsSync(file)).to.equal(false);
    const first = await project.kcore(...words);
    expect([first.code, readFileSync(file, "utf8")], first.stderr).to.deep.equal([0, `it's "kept"\n`]);
    expect((await project.kcore(...words)).stdout).to.contain("changed=0");
  });

  it("have their arguments checked at their place in the state", async () => {
    write("{ path: etc/motd, lin: x }");
    const { code, stderr } = await project.kcore("state", "apply", "motd", "--on", "here");
    expect(code).to.equal(2);
    for (const text of ["motd.yaml:3:16  “line” is missing", "did you mean “line”?", "states/motd.yaml:3:24"])
      expect(stderr).to.contain(text);
  });

  it("are refused when others may write them", async () => {
    write(`{ path: ${file}, line: x }`);
    chmodSync(join(project.project, "modules/site.motd.yaml"), 0o666);
    const { code, stderr } = await project.kcore("state", "apply", "motd", "--on", "here");
    expect([code, stderr.includes("PROJECT_NOT_TRUSTED")], stderr).to.deep.equal([2, true]);
  });

  it("do not hide the others when one is invalid", async () => {
    project.write({ "project/modules/site.broken.yaml": "summary: x\n" });
    const { code, stdout, stderr } = await project.kcore("modules");
    expect([code, stderr]).to.deep.equal([0, "site.broken cannot be used: kcore check says why\n"]);
    expect(stdout).to.contain("site.motd").and.contain("file.managed");
    expect((await project.kcore("check")).stderr).to.contain("modules/site.broken.yaml:1:1");
  });
});
