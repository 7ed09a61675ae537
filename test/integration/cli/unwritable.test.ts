import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";
import { hangLimit } from "#support/limit.ts";
import { root } from "#support/pages.ts";
import { kcoreEnvironment } from "#support/program.ts";

/** In /proc no program can make a folder, and the error there is ENOENT. */
describe("a folder that cannot be created", () => {
  for (const words of [
    ["schema", "--out", "/proc/kcore/x"],
    ["man", "--out", "/proc/kcore/x"],
    ["init", "/proc/kcore/x"],
    ["secrets", "keygen", "--file", "/proc/kcore/x/identity.txt"],
    ["create", "cluster", "--context", "x"],
  ])
    it(`is reported at once by kcore ${words.join(" ")}`, async () => {
      const env = {
        ...process.env,
        ...kcoreEnvironment,
        KCORE_HOME: "/proc/kcore/x",
        KCORE_CA_PASSPHRASE: "a passphrase",
      };
      const given = promisify(execFile)(join(root, "bin/kcore"), words, {
        env,
        timeout: hangLimit,
        killSignal: "SIGKILL",
      });
      const { code, stderr } = await given.then(
        () => expect.fail("nothing was refused"),
        (error: unknown) => error as { readonly code: number; readonly stderr: string },
      );
      expect(code, stderr).to.equal(2);
      expect(stderr).to.match(/^the folder \/proc\/kcore cannot be made: /);
      expect(stderr).to.contain("[USAGE]").and.contain("hint: ");
    });
});

describe("an output file in a folder that does not exist", () => {
  const missingFolder = (): string => join(project.path, "missingFolder");
  let project: TestProject;
  beforeEach(() => {
    project = new TestProject({ "states/x.yaml": "steps: []\n" });
  });
  afterEach(() => project.remove());

  for (const [words, name] of [
    [["schema", "roster", "--out"], "roster.json"],
    [["runs", "export", "last", "--file"], "run.json"],
    [["runs", "show", "last", "--html"], "run.html"],
    [["state", "apply", "x", "--on", "here", "--report"], "run.html"],
  ] as const)
    it(`is refused with the folder's name by kcore ${words.join(" ")}`, async () => {
      await project.call(["state", "apply", "x", "--on", "here"]);
      const { code, stderr } = await project.call([...words, join(missingFolder(), name)]);
      expect([code, stderr.includes(`there is no folder ${missingFolder()}`)], stderr).to.deep.equal([2, true]);
      expect(stderr).to.contain(`hint: mkdir -p ${missingFolder()}`);
    });
});
