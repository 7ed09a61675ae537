import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";

describe("files that a state no longer manages", () => {
  let project: TestProject;
  beforeEach(() => (project = new TestProject()));
  afterEach(() => project.remove());

  it("are reported by the dry run and by the first run without them, and stay until a step removes them", async () => {
    const file = (name: string) => join(project.path, name);
    const managed = (name: string) => `  - { id: ${name}, file.managed: { path: ${file(name)}, content: x } }\n`;
    const apply = async (steps: string, ...words: readonly string[]) => {
      project.write({ "project/states/web.yaml": `steps:\n${steps}` });
      const { code, stdout, stderr } = await project.kcore("state", "apply", "web", "--on", "here", ...words);
      expect(code, stderr + stdout).to.equal(0);
      return stdout;
    };
    const notice = `no longer managed: file ${file("b")} (made by run `;
    expect(await apply(managed("a") + managed("b"))).to.not.contain("no longer managed");
    for (const words of [["--dry-run"], ["-o", "json"]]) expect(await apply(managed("a"), ...words)).to.contain(notice);
    const absent = `  - { id: gone, file.absent: { path: ${file("b")} } }\n`;
    expect(readFileSync(file("b"), "utf8"), "it stays").to.equal("x");
    expect(await apply(managed("a") + absent)).to.not.contain("no longer managed");
    expect(() => readFileSync(file("b"))).to.throw("ENOENT");
    expect(await apply(managed("a"))).to.not.contain("no longer managed");
  });
});
