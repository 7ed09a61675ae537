import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { kcoreProgram } from "#support/deploy.ts";
import { TestProject } from "#support/kcore.ts";
import { kcoreEnvironment } from "#support/program.ts";

const run = promisify(execFile);

describe("the output of a run without a terminal", () => {
  let project: TestProject;
  let words: string;
  beforeEach(() => {
    project = new TestProject({
      "states/hello.yaml": "steps:\n  - id: hello\n    command.run: { cmd: echo hello operator }\n",
    });
    words = `cd '${project.project}' && '${kcoreProgram}' state apply hello --on here`;
  });
  afterEach(() => project.remove());

  function environment(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
    const { path } = project;
    const own = { GITHUB_ACTIONS: "", GITLAB_CI: "", ...kcoreEnvironment, KCORE_HOME: join(path, "home") };
    return { ...process.env, TERM: "xterm-256color", CI: "", ...own, ...more };
  }

  /** Expects lines that each name the node, without escape codes. */
  function expectPlain(text: string): void {
    const lines = text.replaceAll("\r\n", "\n");
    expect(lines).to.match(/^✔ here {2}hello {2}ran/m);
    expect(lines).to.match(/^› here {2}\| hello operator$/m);
    // oxlint-disable-next-line no-control-regex -- finding control characters is the purpose
    expect(lines).to.not.match(/[\u0000-\u0008\u000b-\u001f\u007f]/);
    const live = lines.slice(0, lines.indexOf("\n\n")).split("\n");
    expect(live.slice(1).filter((line) => !/^\S here {2}/.test(line))).to.deep.equal([]);
  }

  it("is plain lines through a pipe and into a file", async () => {
    const file = join(project.path, "out");
    const { stdout } = await run("bash", ["-c", `{ ${words}; } | cat; { ${words}; } > ${file}`], {
      env: environment(),
    });
    expectPlain(stdout);
    expectPlain(readFileSync(file, "utf8"));
  });

  it("is plain lines under script(1), whose output is a file, with and without a terminal size", async () => {
    for (const size of ["", "stty cols 100 rows 30; "]) {
      const { stdout } = await run("script", ["-qec", `${size}${words}`, "/dev/null"], { env: environment() });
      expectPlain(stdout);
    }
  });

  it("is empty with --quiet unless something fails", async () => {
    const well = await run("bash", ["-c", `${words} --quiet`], { env: environment() });
    expect(well).to.deep.equal({ stdout: "", stderr: "" });
    project.write({
      "project/states/hello.yaml": "steps:\n  - id: hello\n    command.run: { cmd: 'echo no; exit 3' }\n",
    });
    const { stdout } = await run("bash", ["-c", `${words} --quiet; test $? = 1`], { env: environment() });
    expect(stdout).to.match(/^(› here {2}[|!] .*\n)+✖ here {2}hello {2}failed: .*\n✖ here {2}failed\n\n/);
    expect(stdout).to.contain("kcore runs resume");
  });

  it("has an annotation on GitHub at the failed step's file and line in the repository", async () => {
    project.write({ "project/states/hello.yaml": "steps:\n  - id: hello\n    command.run: { cmd: 'exit 3' }\n" });
    const onGitHub = environment({ GITHUB_ACTIONS: "true", GITHUB_WORKSPACE: project.path });
    const { stdout } = await run("bash", ["-c", `${words}; test $? = 1`], { env: onGitHub });
    expect(stdout).to.match(/^::error title=here {2}hello,file=project\/states\/hello.yaml,line=\d,col=\d+::/m);
  });
});
